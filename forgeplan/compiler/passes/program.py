"""Which steps turn the model into what runs, in which order, and who asked for each?"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from forgeplan.compiler import graph as ir
from forgeplan.compiler.facts import Facts
from forgeplan.compiler.graph import Relation
from forgeplan.compiler.passes.manager import Results, analysis
from forgeplan.plan.operations import OPERATIONS, Build, Fsdp, Initialise, Materialise, Operation, Recompute

if TYPE_CHECKING:
    from networkx import DiGraph

Maker = Callable[[Facts, Any, str], Operation]


def _fsdp(facts: Facts, written: Any, placed_by: str) -> Operation:
    precision = facts.block("precision")
    reshard = written.reshard if written else "default"
    return Fsdp(placed_by, reshard, precision.params, precision.compute, precision.reduce)


MAKERS: dict[str, Maker] = {
    "build": lambda facts, written, placed_by: Build(placed_by),
    "recompute": lambda facts, written, placed_by: Recompute(placed_by, written.mode),
    "fsdp": _fsdp,
    "materialise": lambda facts, written, placed_by: Materialise(placed_by),
    "initialise": lambda facts, written, placed_by: Initialise(placed_by, facts["seed"].value),
}
"""For each operation, how it is made from the facts, the item of `apply` that names it (or None), and who placed it."""


@analysis("program", "graph")
def program(results: Results) -> tuple[Operation, ...]:
    """The transforms of the graph in order, with their options."""
    facts, graph = results.facts, results["graph"]
    written = {item.tag: item for item in facts.block("apply")}
    placed_by = {node.name: node.placed_by for node in ir.nodes(graph, ir.Transform)}
    return tuple(MAKERS[name](facts, written.get(name), placed_by[name]) for name in in_order(graph))


def in_order(graph: DiGraph) -> list[str]:
    """The graph's transforms, each after all that must precede it; a free choice follows the list of OPERATIONS."""
    import networkx

    order = networkx.DiGraph()
    order.add_nodes_from(ir.key(node) for node in ir.nodes(graph, ir.Transform))
    order.add_edges_from((start, end) for start, end, _ in ir.edges(graph, Relation.MUST_PRECEDE))
    ranks = {f"transform {name}": rank for rank, name in enumerate(OPERATIONS)}
    sorted_ = networkx.lexicographical_topological_sort(order, key=ranks.__getitem__)
    return [key.removeprefix("transform ") for key in sorted_]
