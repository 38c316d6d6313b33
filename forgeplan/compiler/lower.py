"""How does a job become a graph? What is valid of it is lowered; rejected parts are left out."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING

from forgeplan.compiler import graph as ir
from forgeplan.compiler.facts import Facts, Poisoned
from forgeplan.compiler.graph import Relation
from forgeplan.compiler.passes.parameters import parameters_of
from forgeplan.compiler.passes.units import module_of
from forgeplan.compiler.wording import plan_text

if TYPE_CHECKING:
    from networkx import DiGraph


def lower(facts: Facts) -> DiGraph:
    """The graph of a job as written: modules in the order of forward, sources, axes, written transforms, services."""
    graph = ir.new_graph(facts.name)
    parts: tuple[Callable[[DiGraph, Facts], None], ...] = (_model, _sources, _axes, _transforms, _services)
    for part in parts:
        with suppress(Poisoned):
            part(graph, facts)
    return graph


def _model(graph: DiGraph, facts: Facts) -> None:
    counts: dict[str, int] = {}
    for parameter in parameters_of(facts.block("model")).all:
        module = module_of(parameter.name)
        counts[module] = counts.get(module, 0) + parameter.numel
    if facts.block("model").tie:
        counts["head"] = 0
    model = ir.add(graph, ir.Module("model", sum(counts.values())))
    before = None
    for name, count in counts.items():
        module = ir.add(graph, ir.Module(name, count))
        ir.connect(graph, model, Relation.CONTAINS, module)
        if before is not None:
            ir.connect(graph, before, Relation.FEEDS, module)
        before = module


def _sources(graph: DiGraph, facts: Facts) -> None:
    mixture = facts.block("mixture")
    for name, source in facts.block("sources").items():
        weight = plan_text(mixture[name]) if mixture and name in mixture else "" if mixture else "100%"
        node = ir.add(graph, ir.DataSource(name, source.tag, weight))
        if weight and "module embedding" in graph:
            ir.connect(graph, node, Relation.FEEDS, "module embedding")


def _axes(graph: DiGraph, facts: Facts) -> None:
    for axis, degree in _degrees(facts).items():
        if degree > 1:
            ir.add(graph, ir.Axis(axis, degree))


def _degrees(facts: Facts) -> dict[str, int]:
    """The degree of every axis, and of the experts that fold into some of them."""
    mesh = facts.results("mesh")
    return {**mesh.degrees, "ep": mesh.ep}


def _transforms(graph: DiGraph, facts: Facts) -> None:
    """Written transforms. One that is switched off is none, nor is one whose axis has a single rank."""
    degrees = _degrees(facts)
    for item in facts.block("apply"):
        if getattr(item, "mode", "") != "none" and degrees.get(item.tag, 2) > 1:
            ir.add(graph, ir.Transform(item.tag, "plan"))


def _services(graph: DiGraph, facts: Facts) -> None:
    for name, node in facts.block("eval").items():
        service = ir.add(graph, ir.Service(f"eval.{name}", plan_text(node.every)))
        if f"source {node.source}" in graph:
            ir.connect(graph, f"source {node.source}", Relation.FEEDS, service)
    every = facts["checkpoint.every"]
    ir.add(graph, ir.Service("checkpoint", "end" if every.value is None else every.text))
    ir.add(graph, ir.Service("metrics", facts["metrics.every"].text))
