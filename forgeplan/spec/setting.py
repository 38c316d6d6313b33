"""What is known about one field of the plan language? Everything, in one place.

Structurer, hover, completion, reference pages, JSON schema, diff and error text read this and nothing else.
"""

from __future__ import annotations

from enum import Enum
from functools import cache
from typing import Any

import attrs
from attrs import frozen

from forgeplan.spec.types import FieldType, Interval


class Change(Enum):
    """What a different value means for a run that already has checkpoints."""

    COSMETIC = "cosmetic"
    RESUMABLE = "resumable"
    RESHARD = "re-shard"
    NEW_RUN = "new run"

    @property
    def strength(self) -> int:
        """Of two changes at once, the one with the greater strength decides."""
        return list(Change).index(self)


class _Marker(Enum):
    REQUIRED = "required"
    DERIVED = "derived"


REQUIRED = _Marker.REQUIRED
DERIVED = _Marker.DERIVED
"""The default is computed by the derived value of the same path."""


@frozen
class Setting:
    """All that is known about a field.

    `default` is an expression of the plan language, evaluated after layering like any written value, where `self` is
    the record.
    """

    name: str
    type: FieldType
    doc: str
    default: str | _Marker
    within: Interval | None
    change: Change
    required_group: str | None
    """Fields of one record with the same group name: exactly one of them is written."""
    example: str
    """A value shown when the field is missing."""
    aliases: tuple[str, ...] = ()
    """What other tools call the field: suggested, never accepted."""

    @property
    def required(self) -> bool:
        return self.default is REQUIRED


def setting(
    type: FieldType,
    doc: str,
    *,
    default: str | _Marker = REQUIRED,
    within: str | None = None,
    change: Change = Change.NEW_RUN,
    required_group: str | None = None,
    example: str = "",
    aliases: tuple[str, ...] = (),
) -> Any:
    """An attrs field that carries a `Setting`. `within` is an interval such as `[1, )` or `(0, 1]`, in base units."""
    interval = Interval.parse(within) if within else None
    return attrs.field(metadata={"forge": (type, doc, default, interval, change, required_group, example, aliases)})


@cache
def settings_of(block: type) -> dict[str, Setting]:
    """The settings of an attrs class, by their name in the plan language (`global_` is `global` there)."""
    found = {}
    for attribute in attrs.fields(block):
        name = plan_name(attribute.name)
        found[name] = Setting(name, *attribute.metadata["forge"])
    return found


def called(name: str, block: type) -> str | None:
    """The field of `block` that other tools call `name`."""
    return next((s.name for s in settings_of(block).values() if name in s.aliases), None)


def plan_name(attribute: str) -> str:
    return attribute.rstrip("_")


def attribute_name(name: str, block: type) -> str:
    """The attribute of `block` behind a name of the plan language."""
    return str(next(a.name for a in attrs.fields(block) if plan_name(a.name) == name))
