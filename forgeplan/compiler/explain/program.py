"""Which steps make the model ready, in which order, and why in this order?"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import attrs

from forgeplan.compiler.explain.page import wrapped
from forgeplan.compiler.wording import plan_text, plural
from forgeplan.plan.execution_plan import ExecutionPlan
from forgeplan.plan.operations import Operation
from forgeplan.spec.quantity import SHARE, Quantity

PLACED = {"plan": "by plan", "mesh": "by mesh", "always": "always "}


def lines(plan: ExecutionPlan, width: int) -> list[str]:
    """Each operation with who placed it, its options, and its reason."""
    size = max(len(operation.name) for operation in plan.program)
    indent = len(str(len(plan.program))) + 2
    found = []
    for number, operation in enumerate(plan.program, 1):
        line = f"{operation.name:<{size}}  {PLACED[operation.placed_by]}  {_options(operation)}"
        first, *more = [*wrapped(line, width - indent, " " * (size + 11)), *wrapped(operation.why, width - indent)]
        found += [f"{number:>{indent - 2}}  {first}", *(" " * indent + line for line in more)]
    return found


def _options(operation: Operation) -> str:
    options = {a.name: getattr(operation, a.name) for a in attrs.fields(type(operation)) if a.name != "placed_by"}
    if options.get("mode") != "budget":
        # Says something of the one mode only.
        options.pop("budget", None)
    return ", ".join(_said(name, value) for name, value in options.items())


def _said(name: str, value: Any) -> str:
    """`mode full`, `80 blocks`, `budget 50%`."""
    if isinstance(value, tuple):
        return plural(len(value), name.removesuffix("s"))
    return f"{name} {plan_text(Quantity(Fraction(value, 1000), SHARE) if name == 'budget' else value)}"
