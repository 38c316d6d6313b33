"""Which declared names can be the value of a field? Judged by how they are declared, without evaluating anything."""

from __future__ import annotations

from collections.abc import Callable

from forgeplan.dsl import syntax
from forgeplan.dsl.params import read_type
from forgeplan.dsl.symbols import Symbol
from forgeplan.dsl.vocabulary import alternatives
from forgeplan.spec import types as t
from forgeplan.spec.registry import kinds_of

MOST_STEPS = 16

Find = Callable[[str], Symbol | None]
"""The declaration of a name that can be read at the place."""


def fits(symbol: Symbol, expected: t.FieldType | None, find: Find) -> bool:
    """Whether a symbol may be a value of the type; so it is where that cannot be told."""
    shapes = _shapes_of(symbol.item, find, MOST_STEPS)
    return expected is None or not shapes or not shapes.isdisjoint(_taken(expected))


def _shapes_of(item: syntax.Node, find: Find, steps: int) -> frozenset[str]:
    """What a declaration may be, `number` or `optimizer`; empty where its text does not say."""
    match item:
        case syntax.Plan():
            return frozenset(("plan",))
        case syntax.Param(type=type_):
            read = read_type(type_)
            return _taken(read) if read is not None else frozenset()
        case syntax.Let(value=value):
            return _shapes(value, find, steps)
    return frozenset()


def _shapes(value: syntax.Expr, find: Find, steps: int) -> frozenset[str]:
    match value:
        case syntax.Amend(base=base):
            return _shapes(base, find, steps)
        case syntax.Conditional(then=then):
            return _shapes(then, find, steps)
        case syntax.NameRef(name=name):
            further = find(name) if steps else None
            return frozenset(kinds_of(name)) or (
                _shapes_of(further.item, find, steps - 1) if further is not None else frozenset()
            )
    named = {
        "record": syntax.Record,
        "number": syntax.Number | syntax.Unary | syntax.Binary,
        "text": syntax.Text,
        "list": syntax.ListExpr | syntax.Comprehension,
        "truth": syntax.Comparison,
    }
    return frozenset(name for name, kind in named.items() if isinstance(value, kind))


def _taken(type_: t.FieldType) -> frozenset[str]:
    """The shapes that a type takes."""
    found: set[str] = set()
    for a in alternatives(type_):
        match a:
            case t.Component(kind=kind):
                found.add(kind)
            case t.Block() | t.MapOf() | t.NodesOf():
                found.add("record")
            case t.Text() | t.PathText():
                found.add("text")
            case t.ListOf():
                found.add("list")
            case t.Bool():
                found.add("truth")
            case t.Interval() | t.Measure() | t.Measures():
                found.add("number")
            case t.OneOf() | t.NameIn():
                found.add("word")
    return frozenset(found)
