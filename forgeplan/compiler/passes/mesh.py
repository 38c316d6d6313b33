"""How are the devices arranged?"""

from __future__ import annotations

from typing import Any

from forgeplan.compiler.passes.manager import Results, analysis
from forgeplan.plan.mesh import AXES, Mesh


@analysis("mesh")
def mesh(results: Results) -> Mesh:
    """The degree of every axis, and the number of groups of experts."""
    return mesh_of(results.facts.block("mesh"))


def mesh_of(block: Any) -> Mesh:
    """The mesh that a plan's block `mesh` stands for, its `auto` resolved."""
    return Mesh(**{axis: getattr(block, axis) for axis in (*AXES, "ep")})
