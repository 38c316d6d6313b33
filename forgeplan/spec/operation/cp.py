"""How do the parts of one sequence on several ranks attend to one another?"""

from __future__ import annotations

from attrs import frozen

from forgeplan.spec import types as t
from forgeplan.spec.registry import component
from forgeplan.spec.setting import Change, setting


@component("operation", "cp", aliases=("context_parallel",))
@frozen
class Cp:
    """Context parallel: every rank holds a part of each sequence."""

    attention: str = setting(
        t.OneOf(("all_gather", "ring")),
        "keys and values gathered at once, or passed round (Liu et al., 2023)",
        default="all_gather",
        change=Change.RESHARD,
    )
    balance: str = setting(
        t.OneOf(("head_tail", "none")),
        "give each rank an early and a late part of the sequence, so that causal work is equal, or one part in order",
        default="head_tail",
        change=Change.RESHARD,
    )
