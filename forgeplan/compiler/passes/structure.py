"""Which graph is the job, once its transforms are placed and its parameters sharded?"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from forgeplan.compiler import graph as ir
from forgeplan.compiler.graph import Relation
from forgeplan.compiler.passes.manager import Results, analysis
from forgeplan.plan.mesh import Mesh
from forgeplan.plan.operations import OPERATIONS

if TYPE_CHECKING:
    from networkx import DiGraph

SHARDING_AXES = ("dp_shard", "cp")


@analysis("graph", "mesh")
def structure(results: Results) -> DiGraph:
    """The lowered graph with every transform of the program, and modules over the axes that shard them."""
    from forgeplan.compiler.lower import lower

    return shard_modules(place_transforms(lower(results.facts)), results["mesh"])


def place_transforms(graph: DiGraph) -> DiGraph:
    """The graph with the transforms that are always there, and an edge for each pair whose order matters.

    Written transforms keep their written order, unless it contradicts the rules (a check reports that). Edges that
    others imply are left out.
    """
    import networkx

    placed = graph.copy()
    written = [node.name for node in ir.nodes(graph, ir.Transform)]
    for name, operation in OPERATIONS.items():
        if operation.always and name not in written:
            ir.add(placed, ir.Transform(name, "always"))
    names = [node.name for node in ir.nodes(placed, ir.Transform)]
    order = networkx.DiGraph()
    order.add_nodes_from(names)
    order.add_edges_from((name, later) for name in names for later in names if later in OPERATIONS[name].before)
    for pair in pairwise(written):
        if not networkx.has_path(order, *reversed(pair)):
            order.add_edge(*pair)
    for start, end in networkx.transitive_reduction(order).edges:
        ir.connect(placed, f"transform {start}", Relation.MUST_PRECEDE, f"transform {end}")
    return placed


def shard_modules(graph: DiGraph, mesh: Mesh) -> DiGraph:
    """The graph with an edge from every module with parameters to each axis that shards them."""
    sharded = graph.copy()
    axes = [axis for axis in SHARDING_AXES if mesh.degrees[axis] > 1]
    for module in list(ir.nodes(graph, ir.Module)):
        if module.parameters and module.name != "model":
            for axis in axes:
                ir.connect(sharded, ir.key(module), Relation.SHARDS_OVER, f"axis {axis}")
    return sharded
