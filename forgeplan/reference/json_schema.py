"""What is a JSON Schema of a plan's job, as it stands in a compiled plan?

Draft 2020-12. Exact numbers are integers or `"p/q"`, a quantity is an amount with its unit, a component is an object
that names itself. What JSON Schema has no word for stands under `x-forge`: the unit, the range of what is written as a
fraction, the default as an expression, the class of change, and what other tools call the field.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from inspect import cleandoc
from typing import Any

from forgeplan.plan.job_codec import unit_name
from forgeplan.spec import types as t
from forgeplan.spec.plan import Plan
from forgeplan.spec.quantity import NUMBER
from forgeplan.spec.registry import components, kinds
from forgeplan.spec.setting import DERIVED, Setting, settings_of

DRAFT = "https://json-schema.org/draft/2020-12/schema"

Schema = dict[str, Any]


def json_schema() -> Schema:
    """The schema of `job` in a compiled plan, with a definition for every record, component and kind."""
    definitions: dict[str, Schema] = {"fraction": _FRACTION}
    for kind in kinds():
        blocks = components(kind)
        definitions[kind] = {"oneOf": [{"$ref": f"#/$defs/{kind}.{name}"} for name in blocks]}
        definitions |= {f"{kind}.{name}": _object(block, name) for name, block in blocks.items()}
    plan = _object(Plan)
    for block in _records([Plan, *(block for kind in kinds() for block in components(kind).values())]):
        definitions[_record_name(block)] = _object(block)
    return {
        "$schema": DRAFT,
        "title": "The job of an execution plan of forgeplan",
        "description": "`job` in what `forgeplan compile` writes: every field of the plan, resolved and exact.",
        **{key: value for key, value in plan.items() if key != "description"},
        "$defs": dict(sorted(definitions.items())),
    }


_FRACTION = {
    "description": "An exact number that is not whole, in lowest terms.",
    "type": "string",
    "pattern": "^-?[0-9]+/[1-9][0-9]*$",
}


def _records(blocks: list[type]) -> list[type]:
    """The records that fields of these blocks are, at any depth."""
    found: dict[type, None] = {}
    open_ = list(blocks)
    while open_:
        for setting in settings_of(open_.pop()).values():
            for inner in setting.type.alternatives if isinstance(setting.type, t.AnyOf) else (setting.type,):
                if isinstance(inner, t.Block | t.NodesOf) and inner.block not in found:
                    found[inner.block] = None
                    open_.append(inner.block)
    return list(found)


def _record_name(block: type) -> str:
    return f"record.{block.__name__.lower()}"


def _object(block: type, tag: str = "") -> Schema:
    settings = settings_of(block)
    properties: dict[str, Schema] = {"component": {"const": tag}} if tag else {}
    properties |= {name: _field(setting) for name, setting in settings.items()}
    return {
        "description": " ".join(cleandoc(block.__doc__ or "").split()),
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def _field(setting: Setting) -> Schema:
    return {"description": setting.doc, **_typed(setting.type, setting.within), "x-forge": _facts(setting)}


def _facts(setting: Setting) -> Schema:
    """What tools need beside the type; what does not apply is left out."""
    facts: Schema = {"type": setting.type.describe(), "change": setting.change.value}
    if isinstance(setting.default, str):
        facts["default"] = setting.default
    else:
        facts["default"] = None
        facts["computed"] = setting.default is DERIVED
    if setting.within is not None:
        facts["range"] = setting.within.describe()
    if setting.required_group:
        facts["one_of"] = setting.required_group
    if setting.example:
        facts["example"] = setting.example
    if setting.aliases:
        facts["elsewhere"] = list(setting.aliases)
    return facts


def _typed(type_: t.FieldType, within: t.Interval | None = None) -> Schema:
    return _MAKERS[type(type_)](type_, within)


def _measure(type_: t.Measure, within: t.Interval | None) -> Schema:
    unit = {} if type_.dimension == NUMBER else {"x-unit": unit_name(type_.dimension)}
    whole = {"type": "integer", **_bounds(within)}
    return {**(whole if type_.whole else {"anyOf": [whole, {"$ref": "#/$defs/fraction"}]}), **unit}


def _measures(type_: t.Measures, within: t.Interval | None) -> Schema:
    amount = {"anyOf": [{"type": "integer", **_bounds(within)}, {"$ref": "#/$defs/fraction"}]}
    return {
        "type": "object",
        "properties": {"amount": amount, "unit": {"enum": [unit_name(one) for one in type_.dimensions]}},
        "required": ["amount", "unit"],
        "additionalProperties": False,
    }


def _bounds(within: t.Interval | None) -> Schema:
    """The bounds of whole numbers, in base units."""
    if within is None:
        return {}
    found = {}
    if within.low is not None:
        found["exclusiveMinimum" if within.low_open else "minimum"] = _plain(within.low)
    if within.high is not None:
        found["exclusiveMaximum" if within.high_open else "maximum"] = _plain(within.high)
    return found


def _plain(bound: int | Fraction) -> int | float:
    return bound.numerator if bound.denominator == 1 else float(bound)


def _list(type_: t.ListOf, within: t.Interval | None) -> Schema:
    length = {} if type_.length is None else {"minItems": type_.length, "maxItems": type_.length}
    return {"type": "array", "items": _typed(type_.item, within), **length}


def _any_of(type_: t.AnyOf, within: t.Interval | None) -> Schema:
    return {"anyOf": [_typed(one, within) for one in type_.alternatives]}


_MAKERS: dict[type, Callable[[Any, t.Interval | None], Schema]] = {
    t.AnyOf: _any_of,
    t.Measure: _measure,
    t.Measures: _measures,
    t.Component: lambda type_, _: {"$ref": f"#/$defs/{type_.kind}"},
    t.ListOf: _list,
    t.MapOf: lambda type_, within: {"type": "object", "additionalProperties": _typed(type_.value, within)},
    t.NodesOf: lambda type_, _: {
        "type": "object",
        "additionalProperties": {"$ref": f"#/$defs/{_record_name(type_.block)}"},
    },
    t.Block: lambda type_, _: {"$ref": f"#/$defs/{_record_name(type_.block)}"},
    t.Text: lambda type_, _: {"type": "string"},
    t.PathText: lambda type_, _: {"type": "string"},
    t.NameIn: lambda type_, _: {"type": "string"},
    t.Bool: lambda type_, _: {"type": "boolean"},
    t.OneOf: lambda type_, _: {"enum": list(type_.members)},
    t.Nothing: lambda type_, _: {"type": "null"},
}
