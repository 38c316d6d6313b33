"""How are the devices arranged?"""

from __future__ import annotations

from forgeplan.compiler.passes.manager import Results, analysis
from forgeplan.plan.mesh import AXES, Mesh


@analysis("mesh")
def mesh(results: Results) -> Mesh:
    """The degree of every axis; axes that the schema does not have are 1."""
    block = results.facts.block("mesh")
    return Mesh(**{axis: getattr(block, axis, 1) for axis in (*AXES, "ep")})
