"""Which steps turn the model into what runs, in which order, and who asked for each?"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from forgeplan.compiler import graph as ir
from forgeplan.compiler.facts import Facts
from forgeplan.compiler.graph import Relation
from forgeplan.compiler.passes.manager import Results, analysis
from forgeplan.plan.operations import (
    OPERATIONS,
    Build,
    Compile,
    Cp,
    Ep,
    Fp8,
    Fsdp,
    Initialise,
    Materialise,
    Operation,
    Pp,
    Recompute,
    Tp,
)
from forgeplan.spec.operation.pp import SPLIT_BACKWARD

if TYPE_CHECKING:
    from networkx import DiGraph

Maker = Callable[[Facts, str], Operation]


def _pp(facts: Facts, placed_by: str) -> Operation:
    options = facts.transform("pp")
    return Pp(placed_by, options.schedule, options.stages_per_rank, facts.results("stages"))


def _tp(facts: Facts, placed_by: str) -> Operation:
    options = facts.transform("tp")
    return Tp(placed_by, options.sequence, options.kv)


def _cp(facts: Facts, placed_by: str) -> Operation:
    options = facts.transform("cp")
    return Cp(placed_by, options.attention, options.balance)


def _ep(facts: Facts, placed_by: str) -> Operation:
    return Ep(placed_by, facts.transform("ep").hierarchical)


def _fp8(facts: Facts, placed_by: str) -> Operation:
    options = facts.transform("fp8")
    return Fp8(placed_by, options.recipe, options.all_gather, options.emulate, facts.results("float8").converted)


def _recompute(facts: Facts, placed_by: str) -> Operation:
    options = facts.transform("recompute")
    return Recompute(placed_by, options.mode, round(1000 * options.budget), facts.results("replayed"))


def _compile(facts: Facts, placed_by: str) -> Operation:
    options = facts.transform("compile")
    return Compile(placed_by, options.backend, options.fullgraph, options.loss)


def _fsdp(facts: Facts, placed_by: str) -> Operation:
    options, precision = facts.transform("fsdp"), facts.block("precision")
    reshard = options.reshard
    if reshard == "default" and facts["mesh.pp"].value > 1 and facts.transform("pp").schedule in SPLIT_BACKWARD:
        reshard = "never"  # the second part of backward would find freed parameters
    return Fsdp(placed_by, reshard, precision.params, precision.compute, precision.reduce, options.offload)


MAKERS: dict[str, Maker] = {
    "build": lambda facts, placed_by: Build(placed_by),
    "pp": _pp,
    "tp": _tp,
    "cp": _cp,
    "ep": _ep,
    "fp8": _fp8,
    "recompute": _recompute,
    "compile": _compile,
    "fsdp": _fsdp,
    "materialise": lambda facts, placed_by: Materialise(placed_by),
    "initialise": lambda facts, placed_by: Initialise(placed_by, facts["seed"].value),
}
"""For each operation, how it is made from the facts and from who placed it."""


@analysis("program", "graph")
def program(results: Results) -> tuple[Operation, ...]:
    """The transforms of the graph in order, with their options."""
    facts, graph = results.facts, results["graph"]
    placed_by = {node.name: node.placed_by for node in ir.nodes(graph, ir.Transform)}
    return tuple(MAKERS[name](facts, placed_by[name]) for name in in_order(graph))


def in_order(graph: DiGraph) -> list[str]:
    """The graph's transforms, each after all that must precede it; a free choice follows the list of OPERATIONS."""
    import networkx

    order = networkx.DiGraph()
    order.add_nodes_from(ir.key(node) for node in ir.nodes(graph, ir.Transform))
    order.add_edges_from((start, end) for start, end, _ in ir.edges(graph, Relation.MUST_PRECEDE))
    ranks = {f"transform {name}": rank for rank, name in enumerate(OPERATIONS)}
    sorted_ = networkx.lexicographical_topological_sort(order, key=ranks.__getitem__)
    return [key.removeprefix("transform ") for key in sorted_]
