"""What is the learning rate over the run?"""

from __future__ import annotations

from fractions import Fraction

from forgeplan.compiler.explain.page import table, wrapped
from forgeplan.compiler.passes.horizon import updates_of
from forgeplan.compiler.wording import plan_text, plural, scientific
from forgeplan.plan.execution_plan import ExecutionPlan
from forgeplan.spec.quantity import STEPS
from forgeplan.spec.schedule.shapes import rate_factor

HEIGHTS = "▁▂▃▄▅▆▇█"


def lines(plan: ExecutionPlan, width: int) -> list[str]:
    """The schedule in words, its curve, and the rate at the updates where it turns."""
    return [*wrapped(_words(plan), width), "", _curve(plan, width), *table(_turns(plan), "lrl")]


def _words(plan: ExecutionPlan) -> str:
    schedule, peak = plan.job.schedule, plan_text(plan.job.optimizer.lr)
    name = plan.job.optimizer.tag
    if schedule is None:
        return f"{name} at a constant rate of {peak}, without warm-up."
    warmup = _part(plan, "warmup")
    start = f"rises to {peak} over {warmup}, then " if warmup else f"starts at {peak}, then "
    if schedule.tag == "constant":
        return f"{name}, constant: {start}stays there."
    floor = plan_text(plan.job.optimizer.lr * schedule.floor) if schedule.floor else "0"
    if schedule.tag == "wsd":
        end = f"falls to {floor} as {schedule.shape} over the last {_part(plan, 'decay')}"
        return f"{name}, wsd: {start}stays there, and {end}."
    return f"{name}, {schedule.tag}: {start}falls to {floor} at the end."


def _part(plan: ExecutionPlan, name: str) -> str:
    part = getattr(plan.job.schedule, name)
    updates = updates_of(part, plan.steps, plan.estimates.tokens_per_step)
    if not updates:
        return "" if name == "warmup" else "no step"
    return plural(updates, "step") + ("" if part.dimension == STEPS else f" ({plan_text(part)})")


def _factor(plan: ExecutionPlan, update: int) -> float:
    return rate_factor(plan.job.schedule, update, plan.steps, plan.estimates.tokens_per_step)


def _curve(plan: ExecutionPlan, width: int) -> str:
    """The rate over the run as a row of blocks; over ten warm-ups where the run has no number of steps."""
    total = plan.steps or 10 * _warmup(plan)
    columns = min(width, total)
    updates = [max(1, round(Fraction((i + 1) * total, columns))) for i in range(columns)]
    return "".join(HEIGHTS[round(_factor(plan, update) * (len(HEIGHTS) - 1))] for update in updates)


def _warmup(plan: ExecutionPlan) -> int:
    part = getattr(plan.job.schedule, "warmup", None)
    return updates_of(part, plan.steps, plan.estimates.tokens_per_step) or 1


def _turns(plan: ExecutionPlan) -> list[tuple[str, str, str]]:
    """The first update, the end of warm-up, the middle and the last."""
    warmup, last = _warmup(plan), plan.steps
    named = {1: "first update", warmup: "end of warm-up"}
    if last is not None:
        named |= {(last + 1) // 2: "half-way", last: "last update"}
    if warmup == 1:
        named[1] = "first update"
    peak = plan.job.optimizer.lr
    return [(named[u], f"{u:,}", f"lr {scientific(Fraction(_factor(plan, u)) * peak, 3)}") for u in sorted(named)]
