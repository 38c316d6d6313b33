"""How is a job varied: which statements set its paths to values that are already there?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from forgeplan.diagnostics.span import COMMAND_LINE, Span
from forgeplan.dsl import syntax
from forgeplan.dsl.layers import COMMAND_LINE_LAYER, Contribution, Group
from forgeplan.dsl.scope import Scope
from forgeplan.dsl.shapes import Given, RecordShape
from forgeplan.dsl.slots import Shaped
from forgeplan.dsl.structure import as_value
from forgeplan.dsl.values import Value
from forgeplan.dsl.view import View
from forgeplan.dsl.vocabulary import structural
from forgeplan.spec import types as t
from forgeplan.spec.job import ABSENT

_PLACE = Span(COMMAND_LINE, 0, 0)


def statements(view: View, values: Mapping[str, Any]) -> list[Contribution]:
    """Statements of the command line for structured values by path; fields that exclude one of them give way.

    A component is given by its name, a map as a dict; `ABSENT` takes out what is written.
    """
    group = Group(COMMAND_LINE_LAYER)
    found: list[Contribution] = []
    for path, python in values.items():
        if python is ABSENT:
            found.append(_statement(path, "delete", None, group))
            continue
        slot = view.slot(path.split("."))
        found += [_statement(other, "delete", None, group) for other in _excluded(view, path)]
        expr = _expression(python, slot.type if slot is not None else None)
        found.append(_statement(path, "set", expr, group))
    return found


def _statement(path: str, operation: str, expr: syntax.Expr | None, group: Group) -> Contribution:
    names = tuple(syntax.Name(name, span=_PLACE) for name in path.split("."))
    return Contribution(names, operation, expr, Scope(), group, _PLACE, names, len(names))


def _expression(python: Any, type_: t.FieldType | None) -> syntax.Expr:
    part = structural(type_) if type_ is not None else None
    if isinstance(python, dict) and isinstance(part, t.MapOf):
        items = tuple(_assignment(name, _expression(value, part.value)) for name, value in python.items())
        return syntax.Record(items, span=_PLACE)
    if isinstance(python, tuple) and isinstance(part, t.ListOf):
        return syntax.ListExpr(tuple(_expression(value, part.item) for value in python), span=_PLACE)
    return Given(_value(python, type_, part), span=_PLACE)


def _value(python: Any, type_: t.FieldType | None, part: t.FieldType | None) -> Value:
    if isinstance(python, str) and isinstance(part, t.Component):
        return Shaped(RecordShape(python, (), _PLACE))
    return as_value(python, type_ if type_ is not None else t.REAL)


def _assignment(name: str, expr: syntax.Expr) -> syntax.Assign:
    path = syntax.Path((syntax.Name(name, span=_PLACE),), span=_PLACE)
    return syntax.Assign(path, expr, span=_PLACE)


def _excluded(view: View, path: str) -> Iterator[str]:
    """Written fields of which exactly one stands, where the field at `path` is another of them."""
    slot = view.slot(path.split("."))
    if slot is None or slot.parent is None or slot.setting is None or slot.setting.required_group is None:
        return
    for child in slot.parent.open().children.values():
        same = child.setting is not None and child.setting.required_group == slot.setting.required_group
        if same and child is not slot and child.found.written:
            yield child.path
