"""Which steps make the model ready, in which order, and why in this order?"""

from __future__ import annotations

import attrs

from forgeplan.compiler.explain.page import wrapped
from forgeplan.plan.execution_plan import ExecutionPlan
from forgeplan.plan.operations import Operation

PLACED = {"plan": "by plan", "mesh": "by mesh", "always": "always "}


def lines(plan: ExecutionPlan, width: int) -> list[str]:
    """Each operation with who placed it, its options, and its reason."""
    size = max(len(operation.name) for operation in plan.program)
    found = []
    for number, operation in enumerate(plan.program, 1):
        line = f"{number}  {operation.name:<{size}}  {PLACED[operation.placed_by]}  {_options(operation)}"
        found += wrapped(line, width, " " * (size + 14))
        found += ["   " + line for line in wrapped(operation.why, width - 3)]
    return found


def _options(operation: Operation) -> str:
    options = {a.name: getattr(operation, a.name) for a in attrs.fields(type(operation)) if a.name != "placed_by"}
    return ", ".join(f"{name} {value}" for name, value in options.items())
