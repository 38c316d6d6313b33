"""Which graph is the job, once its transforms are placed and its parameters sharded?"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import pairwise
from typing import TYPE_CHECKING

from forgeplan.compiler import graph as ir
from forgeplan.compiler.facts import Facts, Poisoned
from forgeplan.compiler.graph import Relation
from forgeplan.compiler.passes.manager import Results, analysis
from forgeplan.compiler.passes.parameters import parameters_of
from forgeplan.compiler.passes.units import module_of
from forgeplan.plan.operations import OPERATIONS
from forgeplan.plan.sharding import division

if TYPE_CHECKING:
    from networkx import DiGraph

DATA_AXES = ("dp_shard", "cp")
"""Every tensor is cut over these, whatever else cuts it."""


@analysis("graph", "mesh")
def structure(results: Results) -> DiGraph:
    """The lowered graph with every transform of the program, and modules over the axes that shard them."""
    from forgeplan.compiler.lower import lower

    return shard_modules(place_transforms(lower(results.facts)), axes_of_modules(results.facts))


def place_transforms(graph: DiGraph) -> DiGraph:
    """The graph with the transforms that its axes call for or that are always there, and an edge for each pair whose
    order matters.

    Written transforms keep their written order, unless it contradicts the rules (a check reports that). Edges that
    others imply are left out.
    """
    import networkx

    placed = graph.copy()
    written = [node.name for node in ir.nodes(graph, ir.Transform)]
    axes = {node.name for node in ir.nodes(graph, ir.Axis)}
    for name, operation in OPERATIONS.items():
        if name not in written and (operation.always or name in axes):
            ir.add(placed, ir.Transform(name, "always" if operation.always else "mesh"))
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


def shard_modules(graph: DiGraph, axes: Mapping[str, Iterable[str]]) -> DiGraph:
    """The graph with an edge from every module to each axis of the graph that cuts one of its tensors.

    `axes` has those that could, by module.
    """
    sharded = graph.copy()
    for module in list(ir.nodes(graph, ir.Module)):
        for axis in axes.get(module.name, ()):
            if f"axis {axis}" in graph:
                ir.connect(sharded, ir.key(module), Relation.SHARDS_OVER, f"axis {axis}")
    return sharded


def axes_of_modules(facts: Facts) -> dict[str, list[str]]:
    """For each module with parameters, the axes that cut one of them where their degrees are above 1."""
    found: dict[str, dict[str, None]] = {}
    try:
        mesh = facts.results("mesh")
        tp = facts.transform("tp")
        parameters = parameters_of(facts.block("model")).all
    except Poisoned:
        return {}
    for parameter in parameters:
        axes = found.setdefault(module_of(parameter.name), dict.fromkeys(DATA_AXES))
        cut = division(parameter.shape, parameter.cut, mesh, sequence=tp.sequence, kv=tp.kv)
        if cut.weight_dim is not None:
            axes["tp" if parameter.cut.ep is None else "ep"] = None
    return {module: list(axes) for module, axes in found.items()}
