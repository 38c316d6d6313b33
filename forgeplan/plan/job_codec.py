"""How do the values of a plan's fields become JSON, and JSON those values again?

Writing needs the value alone; reading is led by the field types of the schema, so that a count stays an int and a
share a Fraction.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import attrs

from forgeplan.spec import types as t
from forgeplan.spec.quantity import NUMBER, Dimension, Quantity
from forgeplan.spec.registry import components
from forgeplan.spec.setting import attribute_name, plan_name, settings_of


class Malformed(ValueError):
    """A part of a plan is not what its schema says. `path` is where, "" for the whole."""

    def __init__(self, path: str, why: str) -> None:
        super().__init__(f"{path}: {why}" if path else why)
        self.path = path
        self.why = why


def encode(value: Any) -> Any:
    """A value of a plan (number, text, quantity, record, component, list, map) as JSON values."""
    if isinstance(value, Fraction):
        return value.numerator if value.denominator == 1 else f"{value.numerator}/{value.denominator}"
    if isinstance(value, Quantity):
        return {"amount": encode(value.amount), "unit": unit_name(value.dimension)}
    if isinstance(value, tuple | list):
        return [encode(item) for item in value]
    if isinstance(value, dict):
        return {key: encode(item) for key, item in value.items()}
    if attrs.has(type(value)):
        tag = {"component": value.tag} if hasattr(value, "tag") else {}
        return tag | {plan_name(a.name): encode(getattr(value, a.name)) for a in attrs.fields(type(value))}
    return value


def unit_name(dimension: Dimension) -> str:
    return "number" if dimension == NUMBER else str(dimension)


def decode_block(record: Any, block: type, path: str) -> Any:
    """The attrs object of `block` in a JSON record. Raises Malformed."""
    if not isinstance(record, dict):
        raise Malformed(path, "a record is needed here")
    settings = settings_of(block)
    for name in record:
        if name not in settings and name != "component":
            raise Malformed(f"{path}.{name}", f"{block.__name__.lower()} has no such field")
    for name in settings:
        if name not in record:
            raise Malformed(f"{path}.{name}", "the field is missing")
    return block(
        **{
            attribute_name(name, block).lstrip("_"): decode(record[name], s.type, f"{path}.{name}")
            for name, s in settings.items()
        }
    )


def decode(value: Any, type_: t.FieldType, path: str) -> Any:
    """The value of a field in JSON. Raises Malformed."""
    return _DECODERS[type(type_)](value, type_, path)


def _any_of(value: Any, type_: t.AnyOf, path: str) -> Any:
    for alternative in type_.alternatives:
        try:
            return decode(value, alternative, path)
        except Malformed as error:
            if len(error.path) > len(path):
                raise
    raise Malformed(path, f"{value!r} is not {type_.describe()}")


def _measure(value: Any, type_: t.Measure, path: str) -> int | Fraction:
    if type_.whole:
        if isinstance(value, int) and not isinstance(value, bool):
            return value
        raise Malformed(path, f"{value!r} is not a whole number")
    return _fraction(value, path)


def _fraction(value: Any, path: str) -> Fraction:
    if isinstance(value, int) and not isinstance(value, bool):
        return Fraction(value)
    if isinstance(value, str):
        above, slash, below = value.partition("/")
        if slash and above.lstrip("-").isdigit() and below.isdigit() and int(below) > 0:
            return Fraction(int(above), int(below))
    raise Malformed(path, f"{value!r} is not an exact number")


def _measures(value: Any, type_: t.Measures, path: str) -> Quantity:
    units = {unit_name(dimension): dimension for dimension in type_.dimensions}
    if not isinstance(value, dict) or set(value) != {"amount", "unit"} or value["unit"] not in list(units):
        raise Malformed(path, f"an amount with a unit of {', '.join(units)} is needed here")
    amount = _fraction(value["amount"], path)
    return Quantity(amount.numerator if amount.denominator == 1 else amount, units[value["unit"]])


def _component(value: Any, type_: t.Component, path: str) -> Any:
    if not isinstance(value, dict) or "component" not in value:
        raise Malformed(path, f"a {type_.describe()} is needed here")
    known = components(type_.kind)
    if value["component"] not in list(known):  # A list compares, where a map would need what can be hashed.
        raise Malformed(path, f"{value['component']!r} is no {type_.describe()}; known are {', '.join(known)}")
    return decode_block(value, known[value["component"]], path)


def _list(value: Any, type_: t.ListOf, path: str) -> tuple[Any, ...]:
    if not isinstance(value, list) or (type_.length is not None and len(value) != type_.length):
        raise Malformed(path, f"a {type_.describe()} is needed here")
    return tuple(decode(item, type_.item, f"{path}.{i}") for i, item in enumerate(value))


def _map(value: Any, type_: t.MapOf, path: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise Malformed(path, "a map is needed here")
    return {key: decode(item, type_.value, f"{path}.{key}") for key, item in value.items()}


def _nodes(value: Any, type_: t.NodesOf, path: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise Malformed(path, "a map is needed here")
    return {key: decode_block(item, type_.block, f"{path}.{key}") for key, item in value.items()}


def _text(value: Any, type_: t.FieldType, path: str) -> str:
    if not isinstance(value, str):
        raise Malformed(path, f"{value!r} is not {type_.describe()}")
    return value


def _bool(value: Any, type_: t.Bool, path: str) -> bool:
    if not isinstance(value, bool):
        raise Malformed(path, f"{value!r} is not true or false")
    return value


def _member(value: Any, type_: t.OneOf, path: str) -> str:
    if value not in type_.members:
        raise Malformed(path, f"{value!r} is not one of {', '.join(type_.members)}")
    return str(value)


def _nothing(value: Any, type_: t.Nothing, path: str) -> None:
    if value is not None:
        raise Malformed(path, f"{value!r} is not null")


_DECODERS: dict[type, Callable[[Any, Any, str], Any]] = {
    t.AnyOf: _any_of,
    t.Measure: _measure,
    t.Measures: _measures,
    t.Component: _component,
    t.ListOf: _list,
    t.MapOf: _map,
    t.NodesOf: _nodes,
    t.Block: lambda value, type_, path: decode_block(value, type_.block, path),
    t.Text: _text,
    t.PathText: _text,
    t.NameIn: _text,
    t.Bool: _bool,
    t.OneOf: _member,
    t.Nothing: _nothing,
}
