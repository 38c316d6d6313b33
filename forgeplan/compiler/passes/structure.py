"""Which graph is the job, once its transforms are placed and its parameters sharded?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from forgeplan.compiler import graph as ir
from forgeplan.compiler.graph import Relation
from forgeplan.compiler.passes.manager import Results, analysis
from forgeplan.plan.mesh import Mesh
from forgeplan.plan.operations import OPERATIONS, Operation

if TYPE_CHECKING:
    from networkx import DiGraph

SHARDING_AXES = ("dp_shard", "cp")


@analysis("graph", "mesh", "program")
def structure(results: Results) -> DiGraph:
    """The lowered graph with every transform of the program in its order, and modules over the axes that shard them."""
    from forgeplan.compiler.lower import lower

    return shard_modules(place_transforms(lower(results.facts), results["program"]), results["mesh"])


def place_transforms(graph: DiGraph, program: Sequence[Operation]) -> DiGraph:
    """The graph with a node for each operation, and an edge for each pair whose order matters and no other implies."""
    import networkx

    placed = graph.copy()
    placed.remove_nodes_from([key for key, data in graph.nodes(data=True) if isinstance(data["node"], ir.Transform)])
    order = networkx.DiGraph()
    for operation in program:
        order.add_node(ir.add(placed, ir.Transform(operation.name, operation.placed_by)))
    names = [operation.name for operation in program]
    for name in names:
        for later in names:
            if later in OPERATIONS[name].before:
                order.add_edge(f"transform {name}", f"transform {later}")
    for start, end in networkx.transitive_reduction(order).edges:
        ir.connect(placed, start, Relation.MUST_PRECEDE, end)
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
