"""Which parts does a record, a map or a list of components have, and what do they make together?"""

from __future__ import annotations

from functools import cache
from typing import Any

import attrs

from forgeplan.diagnostics.span import SCHEMA, Span
from forgeplan.diagnostics.suggest import choice
from forgeplan.dsl import faults, syntax
from forgeplan.dsl.bindings import declare_values
from forgeplan.dsl.layers import COMMAND_LINE_LAYER, Contribution, Group, contributions_of
from forgeplan.dsl.names import NO_COMPONENT
from forgeplan.dsl.placement import block_form
from forgeplan.dsl.scope import LetBinding, Scope
from forgeplan.dsl.shapes import ListShape, RecordShape, expand
from forgeplan.dsl.slots import Opened, Slot
from forgeplan.dsl.values import Poison
from forgeplan.dsl.vocabulary import a_kind, kinds_in_words, places_of
from forgeplan.spec import types as t
from forgeplan.spec.registry import components
from forgeplan.spec.setting import Setting, plan_name, settings_of

# opening --------------------------------------------------------------------------------------------------------------


def open_record(slot: Slot, shape: RecordShape, whole: Contribution) -> Opened:
    """The parts of a record, component, map or set of nodes. Raises Poison."""
    structure = slot.structure
    if isinstance(structure, t.Block) and shape.tag is None:
        return _fields(slot, structure.block, shape, whole)
    if isinstance(structure, t.Component) and shape.tag is not None:
        return _component(slot, structure.kind, shape, whole)
    if isinstance(structure, t.MapOf) and shape.tag is None:
        return _entries(slot, structure.value, shape, whole)
    if isinstance(structure, t.NodesOf) and shape.tag is None:
        return _entries(slot, t.Block(structure.block), shape, whole)
    if slot.type is None:
        opened = _entries(slot, None, shape, whole)
        opened.tag = shape.tag
        return opened
    found = f"the component `{shape.tag}`" if shape.tag else "a record"
    message = f"`{slot.path}` takes {faults.wanted_of(slot.type)}, not {found}"
    raise slot.ev.fault(
        faults.WRONG_TYPE.at(_place(shape.span, whole), message, help=_example(slot) or _known(structure))
    )


def _component(slot: Slot, kind: str, shape: RecordShape, whole: Contribution) -> Opened:
    tag = shape.tag or ""
    block = components(kind).get(tag)
    if block is None:
        message = f"`{tag}` is {kinds_in_words(tag)}, and `{slot.path}` takes {a_kind(kind)}"
        raise slot.ev.fault(
            NO_COMPONENT.at(_place(shape.span, whole), message, help=f"known: {choice(components(kind))}")
        )
    slot.component = tag
    opened = _fields(slot, block, shape, whole)
    opened.tag = tag
    return opened


def _fields(slot: Slot, block: type, shape: RecordShape, whole: Contribution) -> Opened:
    opened = Opened(block=block, shape=shape, is_damaged=shape.damaged)
    settings = settings_of(block)
    live: dict[str, list[Contribution]] = {}
    meant: list[str | None] = []
    for c in _live(slot, shape, whole):
        name = c.path[0].text
        setting = settings.get(name)
        if setting is None:
            meant.append(_refuse(slot, block, c))
            opened.rejected.add(name)
        elif isinstance(setting.type, t.NodesOf) and _is_set_like_a_field(c):
            slot.ev.report(block_form(c.span, name, c.path[-1].text if len(c.path) == 2 else "name", None))
            opened.rejected.add(name)
        else:
            live.setdefault(name, []).append(c.below())
    old = _superseded(slot)
    # What is unreadable or refused here may be about any field that nobody writes: none of them has its default.
    may_be_meant = slot.path != "" and (shape.damaged or bool(opened.rejected))
    for name, setting in settings.items():
        path = f"{slot.path}.{name}" if slot.path else name
        child = Slot(slot.ev, path, setting.type, setting, slot, live.get(name), old.get(name))
        child.broken = name in opened.rejected or (may_be_meant and not child.found.written)
        opened.children[name] = child
    _require(slot, opened, settings, meant, _place(shape.span, whole))
    return opened


def _is_set_like_a_field(c: Contribution) -> bool:
    """Whether a node is written with `=`, which only the command line may, as it has no blocks."""
    if c.layer == COMMAND_LINE_LAYER and len(c.path) == 2:
        return False
    return c.operation in ("set", "append") and len(c.path) <= 2


def _refuse(slot: Slot, block: type, c: Contribution) -> str | None:
    """Report a name that is no field; returns the field that was likely meant, or "" if nothing like it is known."""
    ev, name = slot.ev, c.path[0].text
    path = f"{slot.path}.{name}" if slot.path else name
    plan = ev.plan
    if plan is not None and slot.parent_plan():
        full = ".".join([path, *(n.text for n in c.path[1:])])
        for derived in (path, full):
            if plan.is_derived(derived):
                ev.report(faults.derived_assigned(derived, plan.reads_of(derived), c))
                return None
    diagnostic, meant = faults.unknown_field(slot, block, c)
    ev.report(diagnostic)
    return meant if meant or diagnostic.help[:1] == () or places_of(name) else ""


def _require(slot: Slot, opened: Opened, settings: dict[str, Setting], meant: list[str | None], place: Span) -> None:
    """Report required fields that nobody writes, unless a misspelt or unreadable one may be it."""
    damaged = opened.is_damaged
    absent = [s for n, s in settings.items() if s.required and not opened.children[n].found.written]
    excused = damaged or not slot.parent_plan() or 0 < len(absent) <= sum(m == "" for m in meant)
    for setting in absent:
        opened.children[setting.name].broken = True
        if not (excused or setting.name in meant or setting.name in opened.rejected):
            deletion = opened.children[setting.name].found.deleted
            slot.ev.report(faults.missing(slot, setting, place, deletion.span if deletion else None))
    for group in sorted({s.required_group for s in settings.values() if s.required_group}):
        members = [s for s in settings.values() if s.required_group == group]
        written = [s for s in members if opened.children[s.name].found.written]
        if len(written) == 1:
            continue
        for s in members:
            opened.children[s.name].broken = True
        if written:
            places = [(s.name, _written_at(opened.children[s.name])) for s in written]
            slot.ev.report(faults.several_of_group(slot, places))
        elif (
            not damaged
            and slot.parent_plan()
            and not any(s.name in meant or s.name in opened.rejected for s in members)
            and "" not in meant
        ):
            slot.ev.report(faults.none_of_group(slot, members, place))


def _written_at(slot: Slot) -> Span:
    found = slot.found
    return (found.whole or (found.appends + found.deeper)[0]).span


def _entries(slot: Slot, type_: t.FieldType | None, shape: RecordShape, whole: Contribution) -> Opened:
    opened = Opened(shape=shape, is_damaged=shape.damaged)
    live: dict[str, list[Contribution]] = {}
    for c in _live(slot, shape, whole):
        live.setdefault(c.path[0].text, []).append(c)
    old = _superseded(slot)
    for name, all_of_name in live.items():
        path = f"{slot.path}.{name}" if slot.path else name
        child = Slot(slot.ev, path, type_, None, slot, [c.below() for c in all_of_name], old.get(name))
        if child.found.whole is not None or (type_ is None and child.found.deeper):
            opened.children[name] = child
            continue
        orphans = [c for c in all_of_name if len(c.path) > 1] if child.found.deeper else []
        idle = [c for c in all_of_name if c.operation == "delete"] if child.found.idle else []
        for c in orphans + idle:
            known = [n for n, cs in live.items() if any(len(x.path) == 1 and x.operation != "delete" for x in cs)]
            if not shape.damaged and not _may_stand_above(slot):
                slot.ev.report(faults.unknown_entry(slot, c, known))
            opened.rejected.add(name)
    return opened


def _may_stand_above(slot: Slot) -> bool:
    """Whether an entry may stand in a statement of the record above that was not understood."""
    above = slot.parent.open() if slot.parent is not None else None
    return above is not None and (above.is_damaged or bool(above.rejected))


def open_list(slot: Slot, shape: ListShape, whole: Contribution) -> Opened:
    """The items of a list of components, by component name where the list is keyed, else by number. Raises Poison."""
    structure = slot.structure
    if not isinstance(structure, t.ListOf):
        message = f"`{slot.path}` takes {faults.wanted_of(slot.type)}, not a list"
        raise slot.ev.fault(faults.WRONG_TYPE.at(_place(shape.span, whole), message, help=_example(slot)))
    opened = Opened(shape=shape)
    for expr, scope in shape.items:
        _add_item(slot, structure, opened, expr, scope, whole.group)
    for c in slot.found.appends:
        _append(slot, structure, opened, c)
    _reach_into_items(slot, opened)
    return opened


def _append(slot: Slot, structure: t.ListOf, opened: Opened, c: Contribution) -> None:
    if c.expr is None:
        return
    more = expand(slot.ev, c.expr, c.scope, slot.type)
    if isinstance(more, ListShape):
        for expr, scope in more.items:
            _add_item(slot, structure, opened, expr, scope, c.group)
    else:
        message = f"`+=` takes a list, such as `{slot.path} += [{slot.ev.text(c.expr.span)}]`"
        slot.ev.report(faults.WRONG_TYPE.at(c.expr.span, message))
        raise Poison


def _add_item(slot: Slot, structure: t.ListOf, opened: Opened, expr: syntax.Expr, scope: Scope, group: Group) -> None:
    name = str(len(opened.children))
    made = Contribution((), "set", expr, scope, group, expr.span, expr, 0)
    child = Slot(slot.ev, f"{slot.path}.{name}", structure.item, None, slot, [made])
    if structure.keyed:
        try:
            name = child.open().tag or name
        except Poison:
            # The same slot, as another one would say again what is wrong with it.
            opened.children[f"?{name}"] = child
            return
        if name in opened.children:  # a repetition, which the compiler reports
            name = f"{name}#{len(opened.children)}"
        child = Slot(slot.ev, f"{slot.path}.{name}", structure.item, None, slot, [made])
    opened.children[name] = child


def _reach_into_items(slot: Slot, opened: Opened) -> None:
    """Dotted statements that reach into items: `apply.recompute.mode = none`, `delete apply.recompute`."""
    for name in dict.fromkeys(c.path[0].text for c in slot.found.deeper):
        reaching = [c for c in slot.found.deeper if c.path[0].text == name]
        child = opened.children.get(name)
        if child is None:
            if not any(n.startswith("?") for n in opened.children):
                slot.ev.report(faults.unknown_entry(slot, reaching[0], list(opened.children)))
            continue
        made = child.found.whole
        again = Slot(
            slot.ev, child.path, child.type, None, slot, [*([made] if made else []), *(c.below() for c in reaching)]
        )
        if again.found.whole is None:
            del opened.children[name]
        else:
            opened.children[name] = again


def check_rivals(slot: Slot) -> None:
    """Report whole values that one layer gives twice, or differently. Raises Poison."""
    found = slot.found
    for c in found.idle:
        slot.ev.report(faults.absent_entry(slot, c))
    first = found.whole
    for rival in found.rivals:
        if first is None or rival.expr is None or first.expr is None:
            continue
        if rival.body is first.body and rival.size == first.size:
            is_entry = slot.parent is not None and _declares(slot.parent.structure)
            raise slot.ev.fault(faults.repeated_field(slot, first, rival, is_entry))
        if slot.structure is not None and rival.expr != first.expr:
            a, b = (" ".join(slot.ev.text(c.expr.span).split()) for c in (first, rival) if c.expr)
            raise slot.ev.fault(faults.disagreement(slot, first, rival, a, b))


def _declares(structure: t.FieldType | None) -> bool:
    return isinstance(structure, t.NodesOf) or (
        isinstance(structure, t.MapOf) and isinstance(structure.value, t.Component)
    )


def _live(slot: Slot, shape: RecordShape, whole: Contribution) -> list[Contribution]:
    def bind(items: tuple[syntax.Item, ...], scope: Scope) -> None:
        declare_values(items, scope, slot.ev.report)
        slot.ev.scopes.append(scope)

    return shape.contributions(slot, whole.group, bind) + slot.found.deeper


def _superseded(slot: Slot) -> dict[str, list[Contribution]]:
    """Statements that a stronger layer replaced, for the parts they were about: provenance only."""
    found: dict[str, list[Contribution]] = {}
    for c in (*slot.superseded, *slot.found.replaced):
        inner = [c] if c.path else _written_in(c.expr, c.scope, c.group)
        for one in inner:
            found.setdefault(one.path[0].text, []).append(one.below())
    return found


def _written_in(expr: syntax.Expr | None, scope: Scope, group: Group, depth: int = 0) -> list[Contribution]:
    """The statements of a record as far as the text shows them, nothing evaluated."""
    match expr:
        case syntax.Record(items=items):
            return contributions_of(items, scope, group, items)
        case syntax.Amend(base=base, record=record) if depth < 16:
            return _written_in(base, scope, group, depth + 1) + _written_in(record, scope, group)
        case syntax.NameRef(name=name) if depth < 16:
            binding = scope.find(name)
            if isinstance(binding, LetBinding):
                return _written_in(binding.expr, binding.scope, group, depth + 1)
    return []


def _place(span: Span, whole: Contribution) -> Span:
    """The place of a record: its own, or the statement's where the schema wrote the record."""
    return whole.span if span.file == SCHEMA else span


def _known(structure: t.FieldType | None) -> tuple[str, ...]:
    return (f"known: {choice(components(structure.kind))}",) if isinstance(structure, t.Component) else ()


def _example(slot: Slot) -> tuple[str, ...]:
    example = slot.setting.example if slot.setting else ""
    return (f"for example `{slot.path} = {example}`",) if example else ()


# building -------------------------------------------------------------------------------------------------------------


def build(slot: Slot) -> Any:
    """The structured object of a part with parts. Raises Poison if any of them has none."""
    opened = slot.open()
    if opened.is_none:
        return None
    values: dict[str, Any] = {}
    poisoned = bool(opened.rejected) or opened.is_damaged
    for name, child in opened.children.items():
        try:
            values[name] = child.structured()
        except Poison:
            poisoned = True
    if poisoned:
        raise Poison
    if opened.block is not None:
        return opened.block(**{attribute: values[name] for name, attribute in _attributes(opened.block)})
    return tuple(values.values()) if isinstance(slot.structure, t.ListOf) else values


@cache
def _attributes(block: type) -> tuple[tuple[str, str], ...]:
    return tuple((plan_name(a.name), a.alias or a.name) for a in attrs.fields(block))
