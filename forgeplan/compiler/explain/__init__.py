"""What does a plan do, on one page? And who decided a value of it?

Pages are views on the execution plan: every number on them is the plan's, or follows from it.
"""

from __future__ import annotations

from forgeplan.compiler.explain import (
    batch,
    float8,
    holding,
    memory,
    mesh,
    model,
    pipeline,
    program,
    schedule,
    sentence,
    services,
)
from forgeplan.compiler.explain.fields import explain_all
from forgeplan.compiler.explain.page import section
from forgeplan.compiler.explain.path import explain_path
from forgeplan.plan.execution_plan import ExecutionPlan

SMALLEST_WIDTH = 80


def explain(plan: ExecutionPlan, width: int = 80) -> str:
    """The whole plan as plain text of at most `width` columns (at least 80)."""
    width = max(width, SMALLEST_WIDTH)
    inner = width - 2
    sections = {
        "MODEL": model.lines,
        "MESH": mesh.lines,
        "WHO HOLDS WHAT": holding.lines,
        "PIPELINE": pipeline.lines,
        "MEMORY": memory.lines,
        "PROGRAM": program.lines,
        "FLOAT8": float8.lines,
        "BATCH": batch.lines,
        "SCHEDULE": schedule.lines,
        "BESIDE TRAINING": services.lines,
    }
    found = ((title, lines(plan, inner)) for title, lines in sections.items())
    parts = [sentence.lines(plan, width), *(section(title, text, width) for title, text in found if text)]
    return "\n\n".join("\n".join(line.rstrip() for line in part) for part in parts) + "\n"


__all__ = ["explain", "explain_all", "explain_path"]
