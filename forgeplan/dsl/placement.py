"""Which statements may stand in which body, and is a word used as the field or the kind of node that it is?"""

from __future__ import annotations

import operator
from collections.abc import Iterable
from typing import Any

import attrs

from forgeplan.diagnostics.codes import code
from forgeplan.diagnostics.diagnostic import Diagnostic, Edit, Fix, Safety
from forgeplan.diagnostics.span import Span
from forgeplan.dsl import syntax
from forgeplan.dsl.words import node_kinds, plan_fields

FP0106 = code(
    "FP0106",
    "`=` sets a field; a block with a name declares one of several nodes (`phase`, `eval`, `capture`, `hook`); "
    "never the other way round",
)
FP0107 = code("FP0107", "the statement is allowed in this body")

TOP_LEVEL = {"import": "`import`", "from": "`from … import`", "forge": "the edition"}

_CALLED: dict[type, str] = {
    syntax.Import: "`import`",
    syntax.FromImport: "`from … import`",
    syntax.Param: "`param`",
    syntax.Let: "`let`",
    syntax.Assign: "a field",
    syntax.Delete: "`delete`",
    syntax.NodeDecl: "a node",
    syntax.Check: "`assert`",
    syntax.Profile: "`profile`",
    syntax.Plan: "`plan`",
    syntax.Sweep: "`sweep`",
    syntax.SweepAxis: "`axis`",
    syntax.Zip: "`zip`",
    syntax.Exclude: "`exclude`",
    syntax.Test: "`test`",
    syntax.Expect: "`expect`",
    syntax.ExpectError: "`expect error`",
}

_TOP = (syntax.Import, syntax.FromImport, syntax.Param, syntax.Let, syntax.Plan, syntax.Sweep, syntax.Test)
_RECORD = (syntax.Assign, syntax.Let)
_PROFILE = (*_RECORD, syntax.Delete, syntax.NodeDecl, syntax.Check)
ALLOWED: dict[str, tuple[type, ...]] = {
    "file": _TOP,
    "record": _RECORD,
    "node": _RECORD,
    "profile": _PROFILE,
    "plan": (*_PROFILE, syntax.Profile),
    "sweep": (*_RECORD, syntax.SweepAxis, syntax.Zip, syntax.Exclude),
    "zip": (syntax.SweepAxis,),
    "test": (syntax.Let, syntax.Expect, syntax.ExpectError),
    "with": (*_RECORD, syntax.Delete, syntax.NodeDecl),
}
_INNER: dict[type, tuple[str, str]] = {
    syntax.Plan: ("body", "plan"),
    syntax.Profile: ("body", "profile"),
    syntax.NodeDecl: ("body", "node"),
    syntax.Sweep: ("items", "sweep"),
    syntax.Zip: ("axes", "zip"),
    syntax.Test: ("items", "test"),
    syntax.ExpectError: ("overrides", "with"),
}
"""Where a statement has a body, and of which kind."""

_BODIES = {
    "file": "a file by itself",
    "record": "a record",
    "node": "the body of a node",
    "profile": "a profile",
    "plan": "a plan",
    "sweep": "a sweep",
    "zip": "`zip`",
    "test": "a test",
    "with": "`with { … }`",
}


def placed(items: Iterable[syntax.Item], body: str, faults: list[Diagnostic]) -> tuple[syntax.Item, ...]:
    """The items of a body, with an ErrorItem for each that may not stand there and the other form for mistaken words.

    The bodies of plans, nodes and other statements are looked through too; what is misplaced as a whole is not.
    """
    allowed = (*ALLOWED[body], syntax.ErrorItem)
    kept: list[syntax.Item] = []
    for item in items:
        if isinstance(item, allowed):
            kept.append(_looked_through(item, body, faults))
            continue
        if not _is_reported(item, faults):
            faults.append(_misplaced(item, body))
        kept.append(syntax.ErrorItem(span=item.span))
    return tuple(kept)


def _looked_through(item: syntax.Item, body: str, faults: list[Diagnostic]) -> syntax.Item:
    if body in ("plan", "profile", "with"):
        item = _rightly_written(item, faults)
    inner = _INNER.get(type(item))
    if inner is None:
        return item
    attribute, kind = inner
    content = getattr(item, attribute)
    if content is None:
        return item
    items = content.items if isinstance(content, syntax.Record) else content
    kept = placed(items, kind, faults)
    if all(map(operator.is_, kept, items)):
        return item
    changed = attrs.evolve(content, items=kept) if isinstance(content, syntax.Record) else kept
    changes: dict[str, Any] = {attribute: changed}
    return attrs.evolve(item, **changes)


def _is_reported(item: syntax.Item, faults: list[Diagnostic]) -> bool:
    spans = (fault.span for fault in faults)
    return any(span is not None and item.span.start <= span.start <= item.span.end for span in spans)


def _misplaced(item: syntax.Item, body: str) -> Diagnostic:
    called = "`warn`" if isinstance(item, syntax.Check) and item.is_warning else _CALLED[type(item)]
    places = [
        _BODIES[name] for name, kinds in ALLOWED.items() if isinstance(item, kinds) and name not in ("node", "with")
    ]
    help = f"it may stand in {_listed(places)}"
    return FP0107.at(_head(item), f"{called} cannot stand in {_BODIES[body]}", help=help)


def _listed(places: list[str]) -> str:
    return places[0] if len(places) == 1 else f"{', '.join(places[:-1])} or {places[-1]}"


def _head(item: syntax.Item) -> Span:
    """The smallest span that names the statement."""
    if isinstance(item, (syntax.Assign, syntax.SweepAxis, syntax.Delete)):
        return item.path.span
    if isinstance(item, syntax.NodeDecl):
        return item.kind.span.to(item.name.span)
    if isinstance(item, (syntax.Profile, syntax.Plan, syntax.Sweep, syntax.Param, syntax.Let)):
        return Span(item.span.file, item.span.start, item.name.span.end)
    return item.span


def _rightly_written(item: syntax.Item, faults: list[Diagnostic]) -> syntax.Item:
    if isinstance(item, syntax.NodeDecl) and item.kind.text in plan_fields():
        return _as_field(item, faults)
    if isinstance(item, syntax.Assign) and len(item.path.names) == 1 and item.path.text in node_kinds():
        return _as_node(item, faults)
    return item


def _as_field(item: syntax.NodeDecl, faults: list[Diagnostic]) -> syntax.Item:
    """`optimizer adamw { … }` is read as `optimizer = adamw { … }`."""
    end = item.kind.span.end
    faults.append(field_form(item.kind.span, item.kind.text, Span(item.span.file, end, end), item.name.text))
    value = syntax.Amend(
        syntax.NameRef(item.name.text, span=item.name.span), item.body, span=item.name.span.to(item.body.span)
    )
    path = syntax.Path((item.kind,), span=item.kind.span)
    return syntax.Assign(path, value, span=item.span, doc=item.doc, allows=item.allows)


def _as_node(item: syntax.Assign, faults: list[Diagnostic]) -> syntax.Item:
    """`eval = held_out { … }` is read as `eval held_out { … }`."""
    kind, value = item.path.names[0], item.value
    if isinstance(value, syntax.ErrorExpr):
        return syntax.ErrorItem(span=item.span)
    if isinstance(value, syntax.Amend) and isinstance(value.base, syntax.NameRef):
        name = syntax.Name(value.base.name, span=value.base.span)
        gap = Edit(Span(kind.span.file, kind.span.end, name.span.start), " ")
        faults.append(block_form(kind.span, kind.text, name.text, gap))
        return syntax.NodeDecl(kind, name, (), value.record, span=item.span, doc=item.doc, allows=item.allows)
    faults.append(block_form(kind.span, kind.text, "name", None))
    return syntax.ErrorItem(span=item.span)


def field_form(span: Span, word: str, gap: Span, value: str = "") -> Diagnostic:
    """FP0106 for a field that is written like a node; `=` belongs at `gap`."""
    fix = Fix("insert `=`", (Edit(gap, " ="),), Safety.SAFE)
    return FP0106.at(
        span, f"`{word}` is set with `=`", help=f"write `{word} = {value + ' ' if value else ''}{{ … }}`", fixes=fix
    )


def block_form(span: Span, kind: str, name: str, edit: Edit | None) -> Diagnostic:
    """FP0106 for a node that is written like a field."""
    fixes = (Fix("take out `=`", (edit,), Safety.SAFE),) if edit else ()
    message = f"`{kind}` declares one of several nodes and is not set with `=`"
    return FP0106.at(span, message, help=f"write `{kind} {name} {{ … }}`", fixes=fixes)
