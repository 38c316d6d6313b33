"""Which activations are computed again in backward instead of kept?"""

from __future__ import annotations

from fractions import Fraction

from attrs import frozen

from forgeplan.spec import types as t
from forgeplan.spec.registry import component
from forgeplan.spec.setting import Change, setting


@component(
    "operation",
    "recompute",
    aliases=("activation_checkpointing", "activation_checkpoint", "gradient_checkpointing", "checkpoint", "ac"),
)
@frozen
class Recompute:
    """Activation checkpointing (Chen et al., 2016).

    `full` keeps the input of a block, and computes everything inside of it again. `selective` keeps the results of
    matrix products, of attention and of exchanges between ranks, and computes again what lies between them. `every` is
    `full` for the k-th, 2k-th … of the blocks, counted over the whole model. `budget` lets the compiler choose what to
    keep, up to the given share of the activations.
    """

    mode: str = setting(
        t.OneOf(
            ("none", "full", "selective", "every", "budget"),
            aliases=(("selective_op", "selective"), ("per_op", "selective"), ("memory_budget", "budget")),
        ),
        "compute again nothing; whole blocks; all but the results of matrix products, attention and exchanges; every"
        " k-th block; or as much as a memory budget asks for, under compile",
        default="full",
        change=Change.COSMETIC,
    )
    every: int = setting(
        t.COUNT, "with mode = every: one block of so many", default="2", within="[1, )", change=Change.COSMETIC
    )
    budget: Fraction = setting(
        t.PORTION,
        "with mode = budget: share of the activations to keep",
        default="50%",
        within="[0, 1]",
        change=Change.COSMETIC,
    )
    only: tuple[str, ...] | None = setting(
        t.optional(t.ListOf(t.Text())),
        "patterns of names of the blocks it is for, of which `every` counts; `none` is all",
        default="none",
        change=Change.COSMETIC,
        example='["layers.*"]',
    )
