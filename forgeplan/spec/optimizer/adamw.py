"""What is AdamW, as far as a plan and its memory go?"""

from __future__ import annotations

from fractions import Fraction
from typing import ClassVar

from attrs import frozen

from forgeplan.spec import types as t
from forgeplan.spec.registry import component
from forgeplan.spec.setting import Change, setting


@component("optimizer", "adamw")
@frozen
class AdamW:
    """Adam with decoupled weight decay (Loshchilov and Hutter, 2019). Norms and biases do not decay."""

    num_moments: ClassVar[int] = 2
    lr: Fraction = setting(
        t.REAL,
        "peak learning rate",
        within="(0, )",
        change=Change.RESUMABLE,
        example="3e-4",
        aliases=("learning_rate", "max_lr", "peak_lr"),
    )
    betas: tuple[Fraction, ...] = setting(
        t.ListOf(t.REAL, length=2),
        "decay of the two moments",
        default="[0.9, 0.95]",
        within="[0, 1)",
        change=Change.RESUMABLE,
    )
    eps: Fraction = setting(
        t.REAL,
        "added to the root of the second moment",
        default="1e-8",
        within="(0, )",
        change=Change.RESUMABLE,
        aliases=("epsilon",),
    )
    weight_decay: Fraction = setting(
        t.REAL, "decay a step, times the rate", default="0.1", within="[0, )", change=Change.RESUMABLE, aliases=("wd",)
    )
    decay_embeddings: bool = setting(t.Bool(), "decay the embedding too", default="false", change=Change.RESUMABLE)
