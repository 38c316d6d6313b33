"""What is the value of a field without parts, and which layers set it?"""

from __future__ import annotations

from typing import Any

from forgeplan.diagnostics.diagnostic import Label
from forgeplan.diagnostics.span import NOWHERE, SCHEMA, Span
from forgeplan.diagnostics.suggest import choice
from forgeplan.dsl import faults, syntax
from forgeplan.dsl.bounds import MAX_ITEMS
from forgeplan.dsl.layers import COMPUTED_LAYER, SCHEMA_LAYER, Contribution
from forgeplan.dsl.parts import check_rivals
from forgeplan.dsl.scope import ParamBinding
from forgeplan.dsl.shapes import Given, OnCommandLine, written
from forgeplan.dsl.slots import Slot
from forgeplan.dsl.structure import Place, as_value, fit
from forgeplan.dsl.values import Poison, Value, kind_of, show
from forgeplan.dsl.vocabulary import optional
from forgeplan.spec import types as t
from forgeplan.spec.provenance import Origin
from forgeplan.spec.setting import DERIVED

__all__ = ["as_value", "leaf", "origins"]

_constants: dict[int, Any] = {}
"""Values of defaults that read nothing, by the identity of their setting (settings live as long as the process)."""
_CLOSED = (syntax.Number, syntax.Constant)


def leaf(slot: Slot) -> Any:
    """The structured value of a field. Raises Poison."""
    for c in slot.found.deeper:
        slot.ev.report(_no_parts(slot, c))
    check_rivals(slot)
    if slot.broken or slot.found.deeper:
        raise Poison
    if slot.found.whole is None and slot.setting is not None and slot.setting.default is DERIVED:
        return _computed(slot)
    if not slot.found.written and id(slot.setting) in _constants:
        result = _constants[id(slot.setting)]
    else:
        result = _evaluated(slot)
    if _left_to_the_compiler(slot, result):
        return _computed(slot)
    return result


def _left_to_the_compiler(slot: Slot, value: Any) -> bool:
    """Whether the value asks for the derived one: `auto`, or `none` for what follows from other fields anyway."""
    asks = value == "auto" or (value is None and slot.setting is not None and slot.setting.default is DERIVED)
    return asks and slot.ev.plan is not None and bool(slot.parent_plan()) and slot.ev.plan.is_derived(slot.path)


def _no_parts(slot: Slot, c: Contribution) -> Any:
    wanted = faults.wanted_of(slot.type)
    rule = faults.UNKNOWN_ON_COMMAND_LINE if c.layer == "command line" else faults.NO_FIELD
    return rule.at(c.path[0].span, f"`{slot.path}` takes {wanted} and has no field `{c.path[0].text}`")


def _evaluated(slot: Slot) -> Any:
    whole = slot.whole()
    if slot.type is None:
        raise Poison
    expr, scope = slot.read_in(whole)
    value = slot.ev.evaluate(expr, scope, slot.type)
    _compare(slot, whole, value)
    for c in slot.found.appends:
        value = _extended(slot, value, c)
    result = fit(value, slot.type, _place(slot, whole))
    if not slot.found.written and slot.setting is not None and isinstance(whole.expr, _CLOSED):
        _constants[id(slot.setting)] = result
    return result


def _place(slot: Slot, whole: Contribution) -> Place:
    expr = written(whole.expr or syntax.ErrorExpr(span=whole.span))
    span = whole.expr.span if whole.expr is not None else expr.span
    if span.file == SCHEMA:
        nearest = slot.parent
        while nearest is not None and (nearest.found.whole is None or nearest.found.whole.span.file == SCHEMA):
            nearest = nearest.parent
        span = nearest.found.whole.span if nearest is not None and nearest.found.whole is not None else span
    within = slot.setting.within if slot.setting else None
    report = slot.ev.report if slot.found.written else slot.ev.unclaimed.append
    return Place(slot.path, expr, span, report, slot.ev.text, within, _param(whole))


def _param(whole: Contribution) -> Label | None:
    binding = whole.scope.find(whole.expr.name) if isinstance(whole.expr, syntax.NameRef) else None
    return Label(binding.param.type.span, f"`{binding.name}`") if isinstance(binding, ParamBinding) else None


def _compare(slot: Slot, whole: Contribution, value: Value) -> None:
    """Statements of equal strength give equal values."""
    for rival in slot.found.rivals:
        other = slot.ev.evaluate(*slot.read_in(rival), slot.type)
        if other != value:
            raise slot.ev.fault(faults.disagreement(slot, whole, rival, show(value), show(other)))


def _extended(slot: Slot, value: Value, c: Contribution) -> Value:
    if not isinstance(value, tuple):
        raise slot.ev.fault(faults.not_a_list(slot, c, kind_of(value)))
    expr, scope = slot.read_in(c)
    more = slot.ev.evaluate(expr, scope, slot.type)
    if not isinstance(more, tuple):
        message = f"`+=` takes a list, such as `[{slot.ev.text(expr.span)}]`, not {kind_of(more)}"
        raise slot.ev.fault(faults.WRONG_TYPE.at(expr.span, message))
    return (value + more)[: MAX_ITEMS + 1]


def _computed(slot: Slot) -> Any:
    plan = slot.ev.plan
    slot.computed = True
    if plan is None or not slot.parent_plan():
        raise Poison
    found = plan.derived_python(slot.path) if plan.is_derived(slot.path) else None
    if found is None and not (slot.type is not None and optional(slot.type)):
        raise Poison
    return found


def origins(slot: Slot) -> tuple[Origin, ...]:
    """Every layer that set the part, the one in force first, then the others by strength.

    The schema's default is the weakest, but in force where a stronger layer replaced all that was written.
    """
    found = slot.found
    layers: list[Origin] = []
    if slot.computed and slot.ev.plan is not None:
        reads = slot.ev.plan.reads_of(slot.path)
        layers.append(Origin(NOWHERE, COMPUTED_LAYER, f"computed from {choice(reads)}" if reads else "computed"))
    inner = found.deeper if isinstance(slot.structure, t.MapOf | t.ListOf) else []
    live = [*([found.whole] if found.whole else []), *found.rivals, *found.appends, *inner]
    default = slot.setting.default if slot.setting else None
    defaults = [Origin(NOWHERE, SCHEMA_LAYER, default)] if isinstance(default, str) else []
    if not live:
        layers, defaults = layers + defaults, []
    for c in (*reversed(live), *reversed(found.replaced), *reversed(slot.superseded)):
        if c.expr is not None:
            span, text = _head(slot, c, c.expr)
            layers.append(Origin(span, c.layer, text))
    return tuple(layers + defaults)


def _head(slot: Slot, c: Contribution, expr: syntax.Expr) -> tuple[Span, str]:
    """The smallest place that stands for a written value, and what is written there."""
    if isinstance(expr, Given):
        return c.span, show(expr.value)
    if expr.span.file == SCHEMA:
        return NOWHERE, _default_text(slot, expr.span)
    if isinstance(expr, OnCommandLine):
        return expr.span, expr.text
    if isinstance(expr, syntax.Record):
        return c.span, "{ … }"
    if isinstance(expr, syntax.Amend):
        while isinstance(expr, syntax.Amend):
            expr = expr.base
        return expr.span, f"{slot.ev.text(expr.span)} {{ … }}"
    return expr.span, slot.ev.text(expr.span)


def _default_text(slot: Slot, span: Span) -> str:
    """What the schema's default, of the part or of one above it, says at a span."""
    above: Slot | None = slot
    while above is not None:
        if above.setting is not None and isinstance(above.setting.default, str):
            return above.setting.default[span.start : span.end]
        above = above.parent
    return ""
