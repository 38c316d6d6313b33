"""Which statements set what would hold without them?"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

from attrs import frozen

from forgeplan.diagnostics.codes import Level, lint_code
from forgeplan.diagnostics.diagnostic import Diagnostic, Fix, Label, Safety
from forgeplan.diagnostics.source import Source
from forgeplan.diagnostics.span import SCHEMA, Span
from forgeplan.dsl import syntax
from forgeplan.dsl.layers import Contribution
from forgeplan.dsl.load import Loaded, deep_recursion
from forgeplan.dsl.scope import Scope
from forgeplan.dsl.slots import Slot, default_expression
from forgeplan.dsl.values import Poison
from forgeplan.lints.deleting import deletion, statements

RESTATES = lint_code("restates-value", "a statement changes the value that it sets", Level.ALLOW)

_READS = (syntax.Member, syntax.Conditional, syntax.Index, syntax.Call, syntax.Comprehension)
"""What makes an expression depend on other values, so that equality may be for now only."""


@frozen
class Below:
    """What would hold without a statement: who says so, and where if a file does."""

    said_by: str
    place: Span | None


def restated(loaded: Loaded, source: Source) -> list[Diagnostic]:
    """Statements of a file whose value is the default or the base's in every view in which they are in force."""
    found: dict[Span, list[Below | None]] = {}
    with deep_recursion():
        for one in loaded.resolved():
            for slot in _leaves(one.view.root):
                whole = slot.found.whole
                if whole is not None and whole.operation == "set" and whole.span.file == source.name:
                    found.setdefault(whole.span, []).append(_below(slot, whole))
    every = list(statements(loaded.module.file))
    deleted = [item.path.text for siblings, index in every if isinstance(item := siblings[index], syntax.Delete)]
    diagnostics = []
    for siblings, index in every:
        item = siblings[index]
        if not isinstance(item, syntax.Assign) or item.append or item.path.text in deleted:
            continue
        below = found.get(item.path.span, [None])
        first = below[0]
        if first is not None and all(below):
            text = source.text[item.span.start : item.span.end]
            fix = Fix("delete it", (deletion(source.text, siblings, index),), Safety.SAFE)
            place = [Label(first.place, "the same value")] if first.place is not None else []
            message = f"`{' '.join(text.split())}` repeats {first.said_by}"
            diagnostics.append(RESTATES.at(item.span, message, *place, fixes=fix))
    return diagnostics


def _leaves(slot: Slot) -> Iterator[Slot]:
    """The parts below one that have a value and no parts."""
    if slot.structure is None:
        yield slot
        return
    with suppress(Poison):
        for child in slot.open().children.values():
            yield from _leaves(child)


def _below(slot: Slot, whole: Contribution) -> Below | None:
    """Whoever would set the value of a part without its statement, if to the same value."""
    weaker = slot.found.replaced[-1] if slot.found.replaced else _default(slot)
    if weaker is None or weaker.operation != "set" or slot.found.rivals or slot.found.appends or slot.broken:
        return None
    with suppress(Poison):
        (expr, scope), (other, around) = slot.read_in(whole), slot.read_in(weaker)
        if not (_is_constant(slot, expr, scope) and _is_constant(slot, other, around)):
            return None
        if slot.ev.evaluate(expr, scope, slot.type) == slot.ev.evaluate(other, around, slot.type):
            is_default = other.span.file == SCHEMA
            return Below("the default" if is_default else weaker.layer, None if is_default else weaker.span)
    return None


def _default(slot: Slot) -> Contribution | None:
    default = slot.setting.default if slot.setting is not None else None
    return slot.implied(default_expression(default)) if isinstance(default, str) else None


def _is_constant(slot: Slot, expr: syntax.Expr, scope: Scope) -> bool:
    """Whether an expression reads nothing, so that what it is equal to now it is equal to for ever."""
    stack: list[syntax.Node] = [expr]
    while stack:
        node = stack.pop()
        if isinstance(node, _READS):
            return False
        if isinstance(node, syntax.NameRef) and (scope.find(node.name) or node.name in (slot.ev.plan or ())):
            return False
        stack.extend(syntax.children(node))
    return True
