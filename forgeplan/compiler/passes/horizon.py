"""When does the run end, and in which step do the parts of its schedule begin?"""

from __future__ import annotations

from attrs import frozen

from forgeplan.compiler.passes.manager import Results, analysis
from forgeplan.plan.points import steps_of_part


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
    parts = [getattr(schedule, name, None) for name in ("warmup", "decay")]
    warmup, decay = (None if part is None else steps_of_part(part, steps, tokens) for part in parts)
    return Horizon(steps, warmup, decay)
