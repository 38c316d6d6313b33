"""How is a graph written down, so that a pass can be tested by what stands before it and after it?

graph tiny
module embedding parameters=16384
axis dp_shard degree=2
module embedding -shards_over-> axis dp_shard
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import attrs

from forgeplan.compiler import graph as ir
from forgeplan.compiler.graph import KINDS, Relation

if TYPE_CHECKING:
    from networkx import DiGraph

_NODE = re.compile(r"(\w+) (\S+)((?: \w+=(?:\"[^\"]*\"|\S+))*)")
_EDGE = re.compile(r"(\w+ \S+) -(\w+)-> (\w+ \S+)")
_ATTRIBUTE = re.compile(r" (\w+)=(\"[^\"]*\"|\S+)")


class GraphTextError(ValueError):
    """A line of a graph's text says nothing that a graph can hold."""


def print_graph(graph: DiGraph) -> str:
    """The graph as text, nodes before edges, in the order of their entry."""
    lines = [f"graph {graph.graph['name']}"]
    lines += [_node_line(node) for node in ir.nodes(graph)]
    lines += [f"{start} -{relation.value}-> {end}" for start, end, relation in ir.edges(graph)]
    return "\n".join(lines) + "\n"


def parse_graph(text: str) -> DiGraph:
    """The graph that a text says. Raises GraphTextError with the number of the line."""
    graph = ir.new_graph("")
    for number, line in enumerate(text.strip().splitlines(), 1):
        line = line.strip()
        try:
            _read(graph, line)
        except (KeyError, TypeError, ValueError) as error:
            raise GraphTextError(f"line {number}: {line!r}: {error}") from None
    return graph


def _read(graph: DiGraph, line: str) -> None:
    if line.startswith("graph "):
        graph.graph["name"] = line.removeprefix("graph ")
    elif edge := _EDGE.fullmatch(line):
        start, relation, end = edge.groups()
        for name in (start, end):
            if name not in graph:
                raise KeyError(f"no node {name!r}")
        ir.connect(graph, start, Relation(relation), end)
    elif node := _NODE.fullmatch(line):
        kind, name, attributes = node.groups()
        ir.add(graph, KINDS[kind](name, **{k: _value(v) for k, v in _ATTRIBUTE.findall(attributes)}))
    else:
        raise ValueError("neither a node nor an edge")


def _node_line(node: Any) -> str:
    defaults = {a.name: a.default for a in attrs.fields(type(node))}
    shown = [
        f"{name}={value if isinstance(value, int) else _quoted(value)}"
        for name, value in attrs.asdict(node).items()
        if name != "name" and value != defaults[name]
    ]
    return " ".join([ir.key(node), *shown])


def _quoted(value: str) -> str:
    return f'"{value}"' if re.search(r"\s", value) or value.isdigit() else value


def _value(text: str) -> int | str:
    if text.startswith('"'):
        return text[1:-1]
    return int(text) if text.isdigit() else text
