"""How are types, ranges and dimensions named on a reference page?"""

from __future__ import annotations

from fractions import Fraction

from attrs import frozen

from forgeplan.spec import types as t
from forgeplan.spec.quantity import BYTES, BYTES_PER_SECOND, FLOP_PER_SECOND, NUMBER, SECONDS, SHARE, Dimension

_DIMENSIONS = {
    NUMBER: "number",
    SECONDS: "duration",
    SHARE: "share",
    BYTES: "bytes",
    BYTES_PER_SECOND: "bytes a second",
    FLOP_PER_SECOND: "FLOP/s",
}
_UNITS = {SECONDS: "s", BYTES: "bytes", FLOP_PER_SECOND: "FLOP/s"}

Text = tuple["str | Link", ...]


@frozen
class Link:
    """A word that leads to its section."""

    text: str
    anchor: str

    @classmethod
    def kind(cls, kind: str) -> Link:
        return cls(kind.replace("_", " "), f"kind-{kind.replace('_', '-')}")

    @classmethod
    def component(cls, kind: str, name: str) -> Link:
        return cls(name, f"{kind}-{name}".replace("_", "-"))

    @classmethod
    def record(cls, block: type) -> Link:
        return cls("record", f"record-{block.__name__.lower()}")


def field_type(type_: t.FieldType) -> Text:
    """A type in words; members of a choice stand in backquotes."""
    match type_:
        case t.Measure():
            name = dimension_name(type_.dimension)
            return ("whole number" if type_.whole and name == "number" else name,)
        case t.Measures():
            return (_either([dimension_name(d) for d in type_.dimensions]),)
        case t.OneOf():
            return (_either([f"`{member}`" for member in type_.members]),)
        case t.Nothing():
            return ("`none`",)
        case t.NameIn():
            return (f"name in `{type_.map}`",)
        case t.Component():
            return (Link.kind(type_.kind),)
        case t.Block():
            return (Link.record(type_.block),)
        case t.NodesOf():
            return ("named ", Link("nodes", Link.record(type_.block).anchor))
        case t.ListOf():
            return (f"list of {type_.length}: " if type_.length else "list of ", *field_type(type_.item))
        case t.MapOf():
            return ("map of ", *field_type(type_.value))
        case t.AnyOf():
            return _alternatives(type_)
    return (type_.describe(),)


def _alternatives(type_: t.AnyOf) -> Text:
    """Bare words come last, in one list."""
    words = [word for one in type_.alternatives for word in _bare(one)]
    others = [field_type(one) for one in type_.alternatives if not _bare(one)]
    parts = [*others, *([(_either([f"`{word}`" for word in words]),)] if words else [])]
    first, *rest = parts
    return (*first, *(part for one in rest for part in (" or ", *one)))


def _bare(type_: t.FieldType) -> tuple[str, ...]:
    return type_.members if isinstance(type_, t.OneOf) else ("none",) if isinstance(type_, t.Nothing) else ()


def dimension_name(dimension: Dimension) -> str:
    return _DIMENSIONS.get(dimension, str(dimension))


def range_text(interval: t.Interval, type_: t.FieldType) -> str:
    """`≥ 1`, `> 0`, `0% .. 100%`; an end that does not belong to the range is said."""
    low, high = (None if end is None else _end(end, type_) for end in (interval.low, interval.high))
    if high is None:
        return f"{'>' if interval.low_open else '≥'} {low}"
    if low is None:
        return f"{'<' if interval.high_open else '≤'} {high}"
    if interval.low_open and interval.high_open:
        return f"between {low} and {high}"
    if interval.low_open or interval.high_open:
        return f"{'>' if interval.low_open else '≥'} {low}, {'<' if interval.high_open else '≤'} {high}"
    return f"{low} .. {high}"


def _end(value: int | Fraction, type_: t.FieldType) -> str:
    dimension = _only_dimension(type_)
    if dimension == SHARE:
        return f"{value * 100}%"
    unit = _UNITS.get(dimension, "") if dimension else ""
    text = f"{value.numerator:_}" if value.denominator == 1 else str(value)
    return f"{text} {unit}" if unit and value else text


def _only_dimension(type_: t.FieldType) -> Dimension | None:
    """The one dimension that numbers of a type have; None where there are several."""
    match type_:
        case t.Measure():
            return type_.dimension
        case t.AnyOf():
            found = {d for one in type_.alternatives if (d := _only_dimension(one)) is not None}
            return found.pop() if len(found) == 1 else None
        case t.ListOf():
            return _only_dimension(type_.item)
    return None


def _either(words: list[str]) -> str:
    return " or ".join(words) if len(words) < 3 else f"{', '.join(words[:-1])} or {words[-1]}"
