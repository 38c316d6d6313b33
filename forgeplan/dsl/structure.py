"""Does an evaluated value fit its field, and which Python value does it become? Nothing is converted silently."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable
from fractions import Fraction
from typing import Any

from attrs import field, frozen

from forgeplan.diagnostics.codes import code
from forgeplan.diagnostics.diagnostic import Diagnostic, Edit, Fix, Label, Safety
from forgeplan.diagnostics.span import SCHEMA, Span
from forgeplan.diagnostics.suggest import did_you_mean
from forgeplan.dsl import syntax
from forgeplan.dsl.evaluate import UNKNOWN_UNIT
from forgeplan.dsl.faults import WRONG_TYPE, safe_fix, wanted_of
from forgeplan.dsl.names import NO_MEMBER, member_called, not_a_member
from forgeplan.dsl.units import COUNTED_WORDS, units_of
from forgeplan.dsl.values import Poison, RecordLike, Symbol, Text, Value, kind_of, show
from forgeplan.dsl.vocabulary import alternatives
from forgeplan.spec import types as t
from forgeplan.spec.quantity import NUMBER, SECONDS, SHARE, Dimension, Quantity

WRONG_DIMENSION = code("FP0308", "the unit has the field's dimension")
OUT_OF_RANGE = code("FP0310", "the value is in the field's range")
NOT_WHOLE = code("FP0312", "counts and sizes are whole after evaluation")
OUTSIDE_PARAM = code("FP0315", "a param has a value, of its type, in its range and in that of every field it reaches")
NO_DURATION = code("FP0704", "warmup, stable and decay take steps, tokens or a share of the schedule, not durations")


@frozen
class Place:
    """Where a value is wanted: the field's path, the expression it came from, what reports."""

    path: str
    expr: syntax.Expr
    span: Span
    report: Callable[[Diagnostic], None] = field(repr=False)
    text: Callable[[Span], str] = field(repr=False)
    within: t.Interval | None = None
    param: Label | None = None
    """The param that the value is read from, if it is nothing else."""

    def at(self, expr: syntax.Expr, number: int) -> Place:
        """The place of an item of a list."""
        span = self.span if expr.span.file == SCHEMA else expr.span
        return Place(f"{self.path}[{number}]", expr, span, self.report, self.text, self.within)

    def fault(self, diagnostic: Diagnostic) -> Poison:
        self.report(diagnostic)
        return Poison()


def fit(value: Value, type_: t.FieldType, place: Place) -> Any:
    """The Python value that `type_` names. Raises Poison, with the reason reported."""
    choices = alternatives(type_)
    chosen = _closest(value, choices)
    if chosen is None:
        raise place.fault(_wrong_type(value, type_, place))
    return _FITTERS[type(chosen)](value, chosen, type_, place)


def _closest(value: Value, choices: tuple[t.FieldType, ...]) -> t.FieldType | None:
    """The alternative for this sort of value; errors are about that one."""
    for a in choices:
        match a:
            case t.Measure() | t.Measures():
                fits = isinstance(value, Quantity)
            case t.Nothing():
                fits = value is None
            case t.OneOf(members=members):
                fits = isinstance(value, Symbol) or (value is None and "none" in members)
            case t.NameIn():
                fits = isinstance(value, Symbol)
            case t.Bool():
                fits = isinstance(value, bool)
            case t.Text() | t.PathText():
                fits = isinstance(value, Text)
            case t.ListOf():
                fits = isinstance(value, tuple)
            case _:
                fits = False
        if fits:
            return a
    enumeration = next((a for a in choices if isinstance(a, t.OneOf)), None)
    return enumeration if isinstance(value, RecordLike) and value.tag and enumeration else None


def _wrong_type(value: Value, type_: t.FieldType, place: Place) -> Diagnostic:
    fixes: tuple[Fix, ...] = ()
    helps: tuple[str, ...] = ()
    quoted = isinstance(value, Text) and isinstance(place.expr, syntax.Text) and len(place.expr.parts) == 1
    bare = str(value).strip() if quoted else ""
    bare = member_called(bare, type_) or bare
    if bare and _fits_bare(bare, type_):
        helps, fixes = (f"without quotes: `{bare}`",), (safe_fix("take the quotes off", place.expr.span, bare),)
    elif (
        isinstance(value, Quantity)
        and any(isinstance(a, t.Bool) for a in alternatives(type_))
        and value.amount in (0, 1)
    ):
        word = "true" if value.amount else "false"
        helps, fixes = (f"`{word}`",), (safe_fix(f"write `{word}`", place.span, word),)
    elif any(isinstance(a, t.ListOf) for a in alternatives(type_)):
        helps = (f"for one item: `[{place.text(place.span)}]`",)
    return WRONG_TYPE.at(
        place.span, f"`{place.path}` takes {wanted_of(type_)}, not {kind_of(value)}", help=helps, fixes=fixes
    )


def _fits_bare(word: str, type_: t.FieldType) -> bool:
    """Whether a text would be a value of the type without its quotes."""
    for a in alternatives(type_):
        if isinstance(a, t.Measure | t.Measures) and re.fullmatch(r"-?\d[\w.%/ +-]*", word):
            return True
        if isinstance(a, t.OneOf) and word in a.members:
            return True
        if isinstance(a, t.Bool) and word in ("true", "false"):
            return True
        if isinstance(a, t.NameIn) and word.isidentifier():
            return True
    return False


def _measure(value: Any, chosen: t.Measure, type_: t.FieldType, place: Place) -> int | Fraction:
    amount: int | Fraction = value.amount
    if value.dimension != chosen.dimension:
        raise place.fault(_dimension(value, (chosen.dimension,), place))
    if chosen.whole and not isinstance(amount, int):
        raise place.fault(_not_whole(value, place))
    if amount == -1 and t.AUTO in alternatives(type_):
        message = f"`{place.path}` takes {wanted_of(type_)}, not -1"
        fix = safe_fix("write `auto`", place.span, "auto")
        raise place.fault(NO_MEMBER.at(place.span, message, help=did_you_mean("auto"), fixes=fix))
    _in_range(value, place)
    if chosen.whole:
        return amount
    _in_range_as_float(value, place)
    return Fraction(amount)


def _measures(value: Any, chosen: t.Measures, type_: t.FieldType, place: Place) -> Quantity:
    if value.dimension not in chosen.dimensions:
        if value.dimension == SECONDS and chosen == t.SPAN_OF_SCHEDULE:
            message = f"`{place.path}` is {show(value)}, and the parts of a schedule are not measured in time"
            help = "the rate is a function of the step alone: steps, tokens or a share of the schedule, such as `3%`"
            raise place.fault(NO_DURATION.at(place.span, message, help=help))
        raise place.fault(_dimension(value, chosen.dimensions, place))
    if value.dimension in COUNTED_WORDS and not isinstance(value.amount, int):
        raise place.fault(_not_whole(value, place))
    _in_range(value, place)
    return value  # type: ignore[no-any-return]


def _dimension(value: Quantity, wanted: tuple[Dimension, ...], place: Place) -> Diagnostic:
    words = wanted_of(t.Measures(wanted))
    units = [unit for dimension in wanted for unit in units_of(dimension)]
    if value.dimension != NUMBER or wanted == (NUMBER,):
        message = f"`{show(value)}` {_measures_what(value.dimension)}, and `{place.path}` takes {words}"
        help = f"units that fit: {', '.join(units)}" if len(units) > 1 else ()
        if NUMBER in wanted:
            help = f"as a plain number: `{show(value.amount)}`"
        elif len(units) == 1:
            help = f"with the unit that fits: `{place.path} = … {units[0]}`"
        return WRONG_DIMENSION.at(place.span, message, help=help)
    fixes: tuple[Fix, ...] = ()
    help = f"units: {', '.join(units)}"
    if wanted == (SHARE,):
        written = show(Quantity(value.amount, SHARE))
        help = f"as a share: `{written}`"
        fixes = (Fix(f"write `{written}`", (Edit(place.span, written),), Safety.ASK),)
    elif len(units) == 1 and isinstance(place.expr, syntax.Number):
        unit = units[0].removesuffix("s") if value.amount == 1 else units[0]
        end = Span(place.span.file, place.span.end, place.span.end)
        help = f"with its unit: `{place.expr.spelling} {unit}`"
        fixes = (safe_fix(f"write `{place.expr.spelling} {unit}`", end, f" {unit}"),)
    message = f"`{place.path}` takes {words}, and {show(value)} has no unit"
    return UNKNOWN_UNIT.at(place.span, message, help=help, fixes=fixes)


def _measures_what(dimension: Dimension) -> str:
    if dimension in COUNTED_WORDS:
        return f"counts {COUNTED_WORDS[dimension]}"
    return {SHARE: "is a share", SECONDS: "is a duration", NUMBER: "is a plain number"}.get(
        dimension, f"measures {dimension}"
    )


def _not_whole(value: Quantity, place: Place) -> Diagnostic:
    below = Fraction(value.amount).__floor__()
    neighbours = [n for n in (below, below + 1) if place.within is None or place.within.contains(n)]
    near = " or ".join(f"`{show(Quantity(n, value.dimension))}`" for n in neighbours)
    if isinstance(place.expr, syntax.Number):
        message = f"`{place.path}` takes a whole number, not {place.text(place.span) or show(value)}"
        return WRONG_TYPE.at(place.span, message, help=near or ())
    return NOT_WHOLE.at(place.span, f"`{place.path}` is {show(value)}, and it must be whole", help=near or ())


def _in_range(value: Quantity, place: Place) -> None:
    within = place.within
    if within is None or within.contains(value.amount):
        return
    message = f"`{place.path}` is {show(value)}, and its range is {show_interval(within, value.dimension)}"
    if place.param is not None:
        raise place.fault(OUTSIDE_PARAM.at(place.span, message, place.param))
    bound = within.low if within.low is not None and value.amount <= within.low else within.high
    is_open = within.low_open if bound == within.low else within.high_open
    help = f"nearest: `{show(Quantity(bound, value.dimension))}`" if bound is not None and not is_open else ()
    raise place.fault(OUT_OF_RANGE.at(place.span, message, help=help))


def _in_range_as_float(value: Quantity, place: Place) -> None:
    """The executor computes with the nearest float, while counts stay whole however large they are."""
    try:
        nearest = float(value.amount)
    except OverflowError:
        message = f"`{place.path}` is {show(value)}, and no floating-point number is as large"
        raise place.fault(OUT_OF_RANGE.at(place.span, message)) from None
    within = place.within
    if within is not None and not within.contains(Fraction(nearest)):
        message = f"`{place.path}` is {show(value)}, and the nearest floating-point number is {nearest:g}"
        help = f"its range is {show_interval(within, value.dimension)}"
        raise place.fault(OUT_OF_RANGE.at(place.span, message, help=help))


def show_interval(within: t.Interval, dimension: Dimension = NUMBER) -> str:
    """A range in words, its ends in the units of `dimension`."""

    def end(amount: int | Fraction) -> str:
        return show(Quantity(amount, dimension))

    if within.high is None and within.low is not None:
        return f"{'above' if within.low_open else 'at least'} {end(within.low)}"
    if within.low is None and within.high is not None:
        return f"{'below' if within.high_open else 'at most'} {end(within.high)}"
    if within.low is None or within.high is None:
        return "unbounded"
    above = f"above {end(within.low)}" if within.low_open else f"from {end(within.low)}"
    return f"{above} {'to below' if within.high_open else 'to'} {end(within.high)}"


def _text(value: Any, chosen: t.Text, type_: t.FieldType, place: Place) -> str:
    return str(value)


def _path(value: Any, chosen: t.PathText, type_: t.FieldType, place: Place) -> str:
    """Relative to the project, with forward slashes; an absolute path stays as it is."""
    text = str(value)
    if not text:
        raise place.fault(WRONG_TYPE.at(place.span, f"`{place.path}` takes a path, and this one is empty"))
    if "\0" in text:
        raise place.fault(WRONG_TYPE.at(place.span, f"`{place.path}` takes a path, and no path has a U+0000 in it"))
    folder = getattr(value, "folder", "")
    if not folder or text.startswith("/"):
        return text
    return posixpath.normpath(posixpath.join(folder, text))


def _bool(value: Any, chosen: t.Bool, type_: t.FieldType, place: Place) -> bool:
    return bool(value)


def _one_of(value: Any, chosen: t.OneOf, type_: t.FieldType, place: Place) -> str:
    name = "none" if value is None else value.name if isinstance(value, Symbol) else value.tag
    if name in chosen.members:
        return str(name)
    raise place.fault(not_a_member(place.path, type_, str(name), place.span))


def _name_in(value: Any, chosen: t.NameIn, type_: t.FieldType, place: Place) -> str:
    return str(value.name)


def _nothing(value: Any, chosen: t.Nothing, type_: t.FieldType, place: Place) -> None:
    return None


def _list(value: Any, chosen: t.ListOf, type_: t.FieldType, place: Place) -> tuple[Any, ...]:
    if chosen.length is not None and len(value) != chosen.length:
        raise place.fault(
            WRONG_TYPE.at(place.span, f"`{place.path}` takes a {chosen.describe()}, not {len(value)} items")
        )
    written = place.expr.items if isinstance(place.expr, syntax.ListExpr) else ()
    exprs = written if len(written) == len(value) else [place.expr] * len(value)
    fitted = []
    poisoned = False
    for number, (item, expr) in enumerate(zip(value, exprs, strict=True)):
        try:
            fitted.append(fit(item, chosen.item, place.at(expr, number)))
        except Poison:
            poisoned = True
    if poisoned:
        raise Poison
    return tuple(fitted)


_FITTERS: dict[type, Callable[[Any, Any, t.FieldType, Place], Any]] = {
    t.Measure: _measure,
    t.Measures: _measures,
    t.Text: _text,
    t.PathText: _path,
    t.Bool: _bool,
    t.OneOf: _one_of,
    t.NameIn: _name_in,
    t.Nothing: _nothing,
    t.ListOf: _list,
}


def as_value(python: Any, type_: t.FieldType) -> Value:
    """The value in the language of a structured value: the way back from `fit`."""
    if python is None or isinstance(python, bool | Quantity):
        return python
    for a in alternatives(type_):
        match a:
            case t.Measure(dimension=dimension) if isinstance(python, int | Fraction):
                amount = python.numerator if python.denominator == 1 else python
                return Quantity(amount, dimension)
            case t.Text() | t.PathText() if isinstance(python, str):
                return Text(python)
            case t.OneOf(members=members) if isinstance(python, str) and python in members:
                return None if python == "none" else Symbol(python)
            case t.NameIn() if isinstance(python, str):
                return Symbol(python)
            case t.ListOf(item=item) if isinstance(python, tuple | list):
                return tuple(as_value(p, item) for p in python)
    if isinstance(python, str):
        return Symbol(python)
    raise TypeError(f"{python!r} is no value of {type_.describe()}")
