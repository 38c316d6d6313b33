"""When does the run end, and in which step do the parts of its schedule begin?"""

from __future__ import annotations

from fractions import Fraction

from attrs import frozen

from forgeplan.compiler.passes.manager import Results, analysis
from forgeplan.spec.quantity import SHARE, TOKENS, Quantity
from forgeplan.spec.schedule.shapes import span_in_updates


@frozen
class Horizon:
    """`steps` is None where only wall time bounds the run; then parts in shares have no length."""

    steps: int | None
    warmup: int | None
    decay: int | None
    """Steps of the decay at the end; None where the schedule has none of its own length."""


@analysis("horizon", "batch")
def horizon(results: Results) -> Horizon:
    """Steps of the run, of warm-up and of decay."""
    facts, tokens = results.facts, results["batch"].tokens
    end = facts.get("budget.steps")
    steps = end.value if end else None
    schedule = facts.block("schedule")
    warmup, decay = (updates_of(getattr(schedule, name, None), steps, tokens) for name in ("warmup", "decay"))
    return Horizon(steps, warmup, decay)


def updates_of(part: Quantity | None, steps: int | None, tokens_per_step: int) -> int | None:
    """Whole updates of a part of the schedule; None where there is no part, or a share of a run without length."""
    if part is None or (part.dimension == SHARE and steps is None):
        return None
    return span_in_updates(part, steps, tokens_per_step)


def exact_updates_of(part: Quantity, steps: int, tokens_per_step: int) -> Fraction:
    """Updates of a part of the schedule of a run of so many steps, nothing rounded."""
    if part.dimension == SHARE:
        return Fraction(part.amount) * steps
    return Fraction(part.amount) / (tokens_per_step if part.dimension == TOKENS else 1)
