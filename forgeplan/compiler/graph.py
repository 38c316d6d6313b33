"""What is the intermediate representation of a job?

A directed graph of modules, data sources, mesh axes, transforms and services. Edges say what a thing contains, feeds,
is sharded over, and what it must precede. Node attributes are attrs objects; the graph is a networkx.DiGraph, which is
imported when the first graph is built, as checking a plan needs none.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum
from typing import TYPE_CHECKING, Any

from attrs import frozen

if TYPE_CHECKING:
    from networkx import DiGraph


class Relation(Enum):
    CONTAINS = "contains"
    FEEDS = "feeds"
    SHARDS_OVER = "shards_over"
    MUST_PRECEDE = "must_precede"


@frozen
class Module:
    """A part of the model. `repeats` is above 1 for one node that stands for neighbours of equal shape."""

    KIND = "module"
    name: str
    parameters: int = 0
    repeats: int = 1


@frozen
class DataSource:
    """A source of sequences, with its share of training."""

    KIND = "source"
    name: str
    format: str = ""
    weight: str = ""


@frozen
class Axis:
    """An axis of the mesh."""

    KIND = "axis"
    name: str
    degree: int = 1


@frozen
class Transform:
    """An operation of the program."""

    KIND = "transform"
    name: str
    placed_by: str = ""


@frozen
class Service:
    """What happens beside training: evaluation, checkpoints, metrics."""

    KIND = "service"
    name: str
    every: str = ""


Node = Module | DataSource | Axis | Transform | Service
KINDS: dict[str, type] = {kind.KIND: kind for kind in (Module, DataSource, Axis, Transform, Service)}


def new_graph(name: str) -> DiGraph:
    """An empty graph of the job `name`."""
    import networkx

    return networkx.DiGraph(name=name)


def key(node: Node) -> str:
    """The name of a node in the graph: `module layers.0`."""
    return f"{node.KIND} {node.name}"


def add(graph: DiGraph, node: Node) -> str:
    """Put a node into the graph and return its key."""
    graph.add_node(key(node), node=node)
    return key(node)


def connect(graph: DiGraph, start: str, relation: Relation, end: str) -> None:
    graph.add_edge(start, end, relation=relation)


def nodes(graph: DiGraph, kind: type | None = None) -> Iterator[Any]:
    """The attrs objects of the graph's nodes, of one kind if given, in the order of their entry."""
    for _, data in graph.nodes(data=True):
        if kind is None or isinstance(data["node"], kind):
            yield data["node"]


def edges(graph: DiGraph, relation: Relation | None = None) -> Iterator[tuple[str, str, Relation]]:
    """(start, end, relation) of the graph's edges, of one relation if given."""
    for start, end, data in graph.edges(data=True):
        if relation is None or data["relation"] is relation:
            yield start, end, data["relation"]
