"""Does the value of a `param` or a typed `let` have its declared type, and lie in its range?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from forgeplan.diagnostics.diagnostic import Label
from forgeplan.diagnostics.span import Span
from forgeplan.diagnostics.suggest import choice, did_you_mean, nearest
from forgeplan.dsl import syntax
from forgeplan.dsl.names import UNKNOWN_NAME, replacing
from forgeplan.dsl.scope import Binding, LetBinding, ParamBinding, Scope
from forgeplan.dsl.shapes import written as written_expression
from forgeplan.dsl.structure import OUTSIDE_PARAM, Place, fit
from forgeplan.dsl.values import Poison, Range, Value, show
from forgeplan.spec import types as t
from forgeplan.spec.quantity import BYTES, Quantity

if TYPE_CHECKING:
    from forgeplan.dsl.evaluate import Evaluator

TYPES: dict[str, t.FieldType] = {
    "Int": t.COUNT,
    "Number": t.REAL,
    "Rate": t.REAL,
    "Share": t.PORTION,
    "Tokens": t.TOKEN_COUNT,
    "Sequences": t.SEQUENCE_COUNT,
    "Steps": t.STEP_COUNT,
    "Bytes": t.Measure(BYTES, whole=True),
    "Duration": t.DURATION,
    "Text": t.Text(),
    "Path": t.PathText(),
    "Bool": t.Bool(),
}


def declaration(binding: Binding) -> syntax.TypeExpr | None:
    if isinstance(binding, ParamBinding):
        return binding.param.type
    return binding.type if isinstance(binding, LetBinding) else None


def declared_type(binding: Binding) -> t.FieldType | None:
    """The type a declaration states, or None if it states none or an unknown one."""
    written = declaration(binding)
    return read_type(written) if written is not None else None


def read_type(written: syntax.TypeExpr) -> t.FieldType | None:
    """The field type of a type as written, its range apart; None if it is unknown."""
    name = written.name.text
    found: t.FieldType | None = TYPES.get(name)
    if name == "List" and len(written.parameters) == 1:
        item = read_type(written.parameters[0])
        found = t.ListOf(item) if item is not None else None
    elif name == "OneOf":
        words = tuple(a.name for a in written.arguments if isinstance(a, syntax.NameRef))
        found = t.OneOf(words) if words and len(words) == len(written.arguments) else None
    return t.optional(found) if found is not None and written.optional else found


def check_declaration(ev: Evaluator, binding: Binding) -> None:
    """Report a declared type that does not exist."""
    written = declaration(binding)
    if written is not None and read_type(written) is None:
        meant = nearest(written.name.text, [*TYPES, "OneOf", "List"])
        helps = [did_you_mean(meant)] if meant else []
        helps.append(f"types are {choice([*TYPES, 'OneOf(a, b)', 'List[T]'])}; `T?` also takes none")
        message = f"`{ev.text(written.span)}` is no type"
        ev.report(UNKNOWN_NAME.at(written.name.span, message, help=helps, fixes=replacing(written.name.span, meant)))


def conform(ev: Evaluator, binding: Binding, value: Value) -> Value:
    """The value if it has the declared type and range. Raises Poison, with the reason reported."""
    written = declaration(binding)
    if written is None:
        return value
    type_ = read_type(written)
    if type_ is None:
        raise Poison
    expr, span = _value_expr(ev, binding)
    fit(value, type_, Place(binding.name, expr, span, ev.report, ev.text))
    if isinstance(value, Quantity) and written.name.text != "OneOf" and written.arguments:
        _check_range(ev, binding, written, value, span)
    return value


def _value_expr(ev: Evaluator, binding: Binding) -> tuple[syntax.Expr, Span]:
    expr: syntax.Expr | None = None
    if isinstance(binding, ParamBinding):
        expr = ev.files.given.get(binding, (binding.param.default, None))[0]
    elif isinstance(binding, LetBinding):
        expr = binding.expr
    return (
        (written_expression(expr), expr.span)
        if expr is not None
        else (syntax.ErrorExpr(span=binding.span), binding.span)
    )


def _check_range(ev: Evaluator, binding: Binding, written: syntax.TypeExpr, value: Quantity, span: Span) -> None:
    argument = written.arguments[0]
    allowed = ev.evaluate(argument, Scope())
    if not isinstance(allowed, Range):
        message = f"the range of `{binding.name}` is written `low .. high`"
        raise ev.fault(OUTSIDE_PARAM.at(argument.span, message))
    if allowed.low.dimension != value.dimension:
        message = (
            f"the range of `{binding.name}` is of {allowed.low.dimension}, and its values are of {value.dimension}"
        )
        raise ev.fault(OUTSIDE_PARAM.at(argument.span, message))
    if not allowed.contains(value):
        message = f"`{binding.name}` is {show(value)}, and its range is {show(allowed)}"
        raise ev.fault(OUTSIDE_PARAM.at(span, message, Label(argument.span, "the declared range")))
