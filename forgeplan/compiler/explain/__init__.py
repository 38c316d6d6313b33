"""What does a plan do, on one page? And who decided a value of it?

Pages are views on the execution plan: every number on them is the plan's, or follows from it.
"""

from __future__ import annotations

from forgeplan.compiler.explain import batch, memory, mesh, model, program, schedule, sentence, services
from forgeplan.compiler.explain.fields import explain_all
from forgeplan.compiler.explain.page import section
from forgeplan.compiler.explain.path import explain_path
from forgeplan.plan.execution_plan import ExecutionPlan

SMALLEST_WIDTH = 80


def explain(plan: ExecutionPlan, width: int = 80) -> str:
    """The whole plan as plain text of at most `width` columns (at least 80)."""
    width = max(width, SMALLEST_WIDTH)
    inner = width - 2
    parts = [
        sentence.lines(plan, width),
        section("MODEL", model.lines(plan, inner), width),
        section("MESH", mesh.lines(plan, inner), width),
        section("MEMORY", memory.lines(plan, inner), width),
        section("PROGRAM", program.lines(plan, inner), width),
        section("BATCH", batch.lines(plan, inner), width),
        section("SCHEDULE", schedule.lines(plan, inner), width),
        section("BESIDE TRAINING", services.lines(plan, inner), width),
    ]
    return "\n\n".join("\n".join(line.rstrip() for line in part) for part in parts) + "\n"


__all__ = ["explain", "explain_all", "explain_path"]
