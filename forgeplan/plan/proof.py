"""Which small plans stand for a large one in a proof, and what was changed to get them?"""

from __future__ import annotations

from attrs import frozen

from forgeplan.plan.execution_plan import ExecutionPlan


@frozen
class Changed:
    """A value of a plan and what stands for it, both in the plan language."""

    path: str
    was: str
    now: str
    why: str = ""


@frozen
class LeftOut:
    """What a proof says nothing about."""

    what: str
    why: str


@frozen
class Trial:
    """A small plan, to be trained on ranks and in one process."""

    plan: ExecutionPlan
    shrunk: tuple[Changed, ...]
    """Sizes that are smaller than those of the plan it stands for."""


@frozen
class Proof:
    """`plan` is the one to be proven; `replaced` are values of another kind in all trials."""

    plan: ExecutionPlan
    trials: tuple[Trial, ...]
    replaced: tuple[Changed, ...]
    left_out: tuple[LeftOut, ...]
