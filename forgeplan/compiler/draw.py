"""How is a graph drawn? As DOT for Graphviz, or as Mermaid for pages that render it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from forgeplan.compiler import graph as ir
from forgeplan.compiler.graph import Axis, DataSource, Module, Node, Relation, Service, Transform
from forgeplan.compiler.wording import plural

if TYPE_CHECKING:
    from networkx import DiGraph

_DOT_STYLE = {
    Module: 'shape=box, style="rounded,filled", fillcolor="#e8f0fe"',
    DataSource: 'shape=cylinder, style=filled, fillcolor="#e6f4ea"',
    Axis: 'shape=hexagon, style=filled, fillcolor="#fef7e0"',
    Transform: 'shape=cds, style=filled, fillcolor="#fce8e6"',
    Service: 'shape=component, style=filled, fillcolor="#f3e8fd"',
}
_MERMAID_SHAPE = {
    Module: ('["', '"]'),
    DataSource: ('[("', '")]'),
    Axis: ('{{"', '"}}'),
    Transform: ('>"', '"]'),
    Service: ('[["', '"]]'),
}
_TITLES = {Module: "model", DataSource: "data", Axis: "mesh", Transform: "program", Service: "services"}


def to_dot(graph: DiGraph) -> str:
    """The graph in Graphviz' language; neighbouring blocks of equal shape are one node."""
    graph = folded(graph)
    lines = [f'digraph "{graph.graph["name"]}" {{', "  rankdir=LR", '  node [fontname="Helvetica"]']
    for kind, title in _TITLES.items():
        members = [node for node in ir.nodes(graph, kind) if ir.key(node) != "module model"]
        if members:
            lines.append(f'  subgraph "cluster_{title}" {{ label="{title}"')
            lines += [
                f'    "{ir.key(node)}" [label="{_label(node, chr(92) + "n")}", {_DOT_STYLE[kind]}]' for node in members
            ]
            lines.append("  }")
    for start, end, relation in _drawn_edges(graph):
        style = "" if relation is Relation.FEEDS else f' [label="{relation.value.replace("_", " ")}", style=dashed]'
        lines.append(f'  "{start}" -> "{end}"{style}')
    return "\n".join([*lines, "}"]) + "\n"


def to_mermaid(graph: DiGraph) -> str:
    """The graph in Mermaid's language; neighbouring blocks of equal shape are one node."""
    graph = folded(graph)
    ids = {ir.key(node): f"n{i}" for i, node in enumerate(ir.nodes(graph))}
    lines = ["flowchart LR"]
    for kind, title in _TITLES.items():
        members = [node for node in ir.nodes(graph, kind) if ir.key(node) != "module model"]
        if members:
            before, after = _MERMAID_SHAPE[kind]
            lines.append(f"  subgraph {title}")
            lines += [f"    {ids[ir.key(node)]}{before}{_label(node, '<br>')}{after}" for node in members]
            lines.append("  end")
    for start, end, relation in _drawn_edges(graph):
        arrow = "-->" if relation is Relation.FEEDS else f"-. {relation.value.replace('_', ' ')} .->"
        lines.append(f"  {ids[start]} {arrow} {ids[end]}")
    return "\n".join(lines) + "\n"


def folded(graph: DiGraph) -> DiGraph:
    """The graph with each run of neighbouring blocks of equal parameters as one node `layers.0…31`."""
    runs: list[list[Module]] = []
    for module in ir.nodes(graph, Module):
        last = runs[-1][-1] if runs else None
        same = last is not None and last.parameters == module.parameters
        if same and module.name.startswith("layers.") and last is not None and last.name.startswith("layers."):
            runs[-1].append(module)
        else:
            runs.append([module])
    new_names: dict[str, Module] = {}
    for run in runs:
        if len(run) > 1:
            one = attrs.evolve(run[0], name=f"{run[0].name}…{run[-1].name.rpartition('.')[2]}", repeats=len(run))
            new_names |= {ir.key(module): one for module in run}
    small = ir.new_graph(graph.graph["name"])
    for node in ir.nodes(graph):
        ir.add(small, new_names.get(ir.key(node), node))
    for start, end, relation in ir.edges(graph):
        at = [ir.key(new_names[name]) if name in new_names else name for name in (start, end)]
        if at[0] != at[1]:
            ir.connect(small, at[0], relation, at[1])
    return small


def _drawn_edges(graph: DiGraph) -> list[tuple[str, str, Relation]]:
    """All edges but containment, which the clusters show."""
    return [edge for edge in ir.edges(graph) if edge[2] is not Relation.CONTAINS]


def _label(node: Node, newline: str) -> str:
    match node:
        case Module(name, parameters, repeats):
            times = f"{repeats} × " if repeats > 1 else ""
            return f"{name}{newline}{times}{parameters:,} parameters" if parameters else f"{name}{newline}tied"
        case DataSource(name, format, weight):
            return f"{name}{newline}{format}" + (f", {weight}" if weight else "")
        case Axis(name, degree):
            return f"{name}{newline}{plural(degree, 'rank')}"
        case Transform(name, placed_by):
            who = {"plan": "written in the plan", "mesh": "asked for by the mesh", "always": "always there"}
            return f"{name}{newline}{who.get(placed_by, placed_by)}" if placed_by else name
        case Service(name, every):
            return f"{name}{newline}every {every}" if every else name
