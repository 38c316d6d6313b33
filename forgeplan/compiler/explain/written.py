"""What did the plan of a page ask of its transforms, and where did that put the model?"""

from __future__ import annotations

from typing import Any

from forgeplan.compiler.passes.layout import Layout, layout_of
from forgeplan.diagnostics.refusal import InternalError
from forgeplan.plan.execution_plan import ExecutionPlan


def transform(plan: ExecutionPlan, name: str, otherwise: Any = None) -> Any:
    """The options of a transform in `apply`, or `otherwise` where it is not there."""
    return next((item for item in plan.job.apply if item.tag == name), otherwise)


def layout(plan: ExecutionPlan) -> Layout:
    """Which modules are on which ranks, and what cuts their tensors."""
    found = layout_of(plan.job.model, plan.mesh, plan.job.apply)
    if found is None:
        raise InternalError("a compiled plan has a mesh that does not divide its model")
    return found
