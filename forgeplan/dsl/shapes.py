"""What does an expression look like before its parts are evaluated: a record, a list, or a plain value?

Records are kept as bodies with their scopes, so that an amended or inherited record evaluates its expressions where
it ends up, with `self` the record as amended.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from attrs import frozen

from forgeplan.diagnostics.codes import code
from forgeplan.diagnostics.diagnostic import Diagnostic
from forgeplan.diagnostics.span import Span
from forgeplan.dsl import syntax
from forgeplan.dsl.layers import Contribution, Group, Piece, contributions_of
from forgeplan.dsl.names import component_named
from forgeplan.dsl.scope import LetBinding, ModuleBinding, Scope
from forgeplan.dsl.values import RecordLike, kind_of
from forgeplan.dsl.vocabulary import alternatives
from forgeplan.spec import types as t
from forgeplan.spec.types import FieldType

if TYPE_CHECKING:
    from forgeplan.dsl.evaluate import Evaluator

NO_TARGET = code(
    "FP0304",
    "an override, `delete`, `+=` or `base { … }` hits something that is there, of a fitting kind",
)


@frozen(eq=False)
class Given(syntax.Expr):
    """A value of the language where an expression is expected."""

    value: Any


@frozen(eq=False)
class OnCommandLine(syntax.Expr):
    """The right side of `--set path=value`: where the field takes a text, a text as it stands, unless it is one in
    quotes; else an expression."""

    text: str
    parsed: syntax.Expr
    diagnostics: tuple[Diagnostic, ...]
    folder: str


def written(expr: syntax.Expr) -> syntax.Expr:
    """The expression itself, also where the command line wrote it."""
    return expr.parsed if isinstance(expr, OnCommandLine) else expr


def takes_text(expected: FieldType | None) -> bool:
    return any(isinstance(a, t.Text | t.PathText) for a in alternatives(expected)) if expected is not None else False


@frozen(eq=False)
class RecordShape:
    """Bodies of a record, weakest first. `span` is the smallest place that stands for the record as a whole."""

    tag: str | None
    pieces: tuple[Piece, ...]
    span: Span
    reaching: tuple[Contribution, ...] = ()
    """Dotted statements from outside, where the record of another path is referred to."""

    @property
    def damaged(self) -> bool:
        return any(piece.damaged for piece in self.pieces)

    def contributions(self, owner: RecordLike, group: Group, bind: Any) -> list[Contribution]:
        """The statements of all bodies for the record `owner`. `bind` declares the `let`s of a body in its scope."""
        found: list[Contribution] = []
        for piece in self.pieces:
            scope = piece.scope
            if not piece.is_bound:
                scope = scope.inside(owner)
                bind(piece.items, scope)
            strength = piece.group or group
            if strength is _REFERENCED:
                strength = Group(group.layer)
            found += contributions_of(piece.items, scope, strength, piece.items)
        return found + list(self.reaching)


@frozen(eq=False)
class ListShape:
    """Items, each with the scope it is read in."""

    items: tuple[tuple[syntax.Expr, Scope], ...]
    span: Span


Shape = RecordShape | ListShape | None


def expand(ev: Evaluator, expr: syntax.Expr, scope: Scope, expected: FieldType | None = None) -> Shape:
    """The shape, or None for what has to be evaluated. Raises Poison for what cannot be either."""
    while isinstance(expr, syntax.Conditional):
        expr = ev.branch(expr, scope)
    match expr:
        case syntax.Record(items=items):
            return RecordShape(None, (Piece(items, scope, None),), _head(expr))
        case syntax.Amend():
            return _amend(ev, expr, scope, expected)
        case syntax.NameRef():
            return _named(ev, expr, scope, expected)
        case syntax.Member():
            return _member(ev, expr, scope, expected)
        case syntax.ListExpr(items=items):
            return ListShape(tuple((item, scope) for item in items), expr.span)
        case syntax.Comprehension():
            return ListShape(tuple(ev.comprehension_items(expr, scope)), expr.span)
        case OnCommandLine(parsed=parsed) if not takes_text(expected) and not expr.diagnostics:
            return expand(ev, parsed, scope, expected)
        case Given(value=value):
            return shape_of(value, expr.span, scope)
        case syntax.Binary(operator="+"):
            return _joined(ev, expr, scope, expected)
    return None


def shape_of(value: Any, span: Span, scope: Scope) -> Shape:
    """The shape of a value that is already there."""
    if isinstance(value, tuple):
        return ListShape(tuple((Given(item, span=span), scope) for item in value), span)
    if isinstance(value, RecordLike):
        shape = getattr(value, "shape", None)
        return shape() if shape else None
    return None


def _head(record: syntax.Record) -> Span:
    return Span(record.span.file, record.span.start, min(record.span.start + 1, record.span.end))


def _amend(ev: Evaluator, expr: syntax.Amend, scope: Scope, expected: FieldType | None) -> RecordShape:
    own = Piece(expr.record.items, scope, None)
    base = expand(ev, expr.base, scope, expected)
    if isinstance(base, RecordShape):
        return RecordShape(base.tag, (*map(_weaker, base.pieces), own), expr.base.span, base.reaching)
    value = ev.evaluate(expr.base, scope) if base is None else None
    found = kind_of(value) if base is None else "a list"
    message = f"`{ev.text(expr.base.span)}` is {found}, and only a record or a component can be amended with `{{ … }}`"
    raise ev.fault(NO_TARGET.at(expr.base.span, message))


def _named(ev: Evaluator, expr: syntax.NameRef, scope: Scope, expected: FieldType | None) -> Shape:
    if expr.name == "self":
        return shape_of(scope.self_record(), expr.span, scope)
    binding = scope.find(expr.name)
    if isinstance(binding, LetBinding):
        return _let(ev, binding, expr.span, expected)
    if binding is not None:
        return shape_of(ev.value_of(binding, expr.span), expr.span, scope)
    tag = component_named(ev, expr, scope, expected)
    if tag is not None:
        return RecordShape(tag, (), expr.span)
    if ev.plan is not None and expr.name in ev.plan:
        return shape_of(ev.plan.read(expr), expr.span, scope)
    return None


def _let(ev: Evaluator, binding: LetBinding, span: Span, expected: FieldType | None) -> Shape:
    ev.enter(("shape", binding), f"`{binding.name}`", span)
    try:
        shape = expand(ev, binding.expr, binding.scope, expected)
    finally:
        ev.leave(("shape", binding))
    if isinstance(shape, RecordShape):
        return RecordShape(shape.tag, tuple(map(_weaker, shape.pieces)), span, shape.reaching)
    return shape


def _weaker(piece: Piece) -> Piece:
    """A body that comes through a name is weaker than what is written beside the name."""
    return Piece(piece.items, piece.scope, piece.group or _REFERENCED)


_REFERENCED = Group("")


def _member(ev: Evaluator, expr: syntax.Member, scope: Scope, expected: FieldType | None) -> Shape:
    if isinstance(expr.base, syntax.NameRef):
        module = scope.find(expr.base.name)
        if isinstance(module, ModuleBinding):
            binding = ev.exported(module, expr.name)
            if isinstance(binding, LetBinding):
                return _let(ev, binding, expr.span, expected)
    return shape_of(ev.evaluate(expr, scope), expr.span, scope)


def _joined(ev: Evaluator, expr: syntax.Binary, scope: Scope, expected: FieldType | None) -> Shape:
    left, right = expand(ev, expr.left, scope, expected), expand(ev, expr.right, scope, expected)
    if isinstance(left, ListShape) and isinstance(right, ListShape):
        return ListShape(left.items + right.items, expr.span)
    return None
