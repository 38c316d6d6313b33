"""Which values can an expression have while a plan is resolved, and how does a person read them?

Besides `Quantity`, `bool`, `None` and tuples there are the classes below. Records are `RecordLike`: their fields are
evaluated when they are read.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from fractions import Fraction
from typing import TYPE_CHECKING, TypeAlias

from attrs import frozen

from forgeplan.dsl.units import show_quantity
from forgeplan.spec.quantity import NUMBER, Quantity

if TYPE_CHECKING:
    from forgeplan.dsl.syntax import Name


class Poison(Exception):
    """The value cannot be had, and the reason is already reported: whoever meets it stays silent."""


@frozen
class Symbol:
    """A bare member of an enumeration, or the name of an entry of a map."""

    name: str


class Text(str):
    """A text that remembers the folder of the file that wrote it, as paths are relative to it; "" is the project."""

    folder: str

    def __new__(cls, text: str, folder: str = "") -> Text:
        new = super().__new__(cls, text)
        new.folder = folder
        return new


@frozen
class Range:
    """`low .. high`, both included."""

    low: Quantity
    high: Quantity

    def contains(self, value: Quantity) -> bool:
        return bool(self.low.amount <= value.amount <= self.high.amount)


class RecordLike(ABC):
    """Anything with named members."""

    @property
    @abstractmethod
    def tag(self) -> str | None:
        """The component's name, if it is one."""

    @abstractmethod
    def member(self, name: Name) -> Value:
        """The value of a member. Raises Poison; an unknown member is reported."""

    @abstractmethod
    def names(self) -> list[str]:
        """The members that can be read."""


Value: TypeAlias = "Quantity | Text | bool | Symbol | Range | tuple[Value, ...] | RecordLike | None"


def number(amount: int | Fraction) -> Quantity:
    return Quantity(whole_if_possible(amount), NUMBER)


def whole_if_possible(amount: int | Fraction) -> int | Fraction:
    return amount.numerator if isinstance(amount, Fraction) and amount.denominator == 1 else amount


def show(value: object) -> str:
    """The value as a plan would write it."""
    match value:
        case None:
            return "none"
        case bool():
            return "true" if value else "false"
        case int() | Fraction():
            return show_quantity(Quantity(value, NUMBER))
        case Quantity():
            return show_quantity(value)
        case Symbol():
            return value.name
        case str():
            return '"' + value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'
        case Range():
            return f"{show(value.low)} .. {show(value.high)}"
        case tuple():
            return "[" + shorten([show(v) for v in value]) + "]"
        case RecordLike():
            return f"{value.tag} {{ … }}" if value.tag else "{ … }"
        case _:
            return str(value)


def shorten(items: Iterable[str], limit: int = 8) -> str:
    items = list(items)
    return ", ".join(items if len(items) <= limit else [*items[:limit], f"… ({len(items)} in all)"])


def kind_of(value: Value) -> str:
    """What sort of value it is, for a message about a wrong one."""
    match value:
        case None:
            return "none"
        case bool():
            return f"`{show(value)}`"
        case Quantity(dimension=dimension):
            return "a plain number" if dimension == NUMBER else f"a number of {dimension}"
        case Symbol():
            return f"the word `{value.name}`"
        case Text():
            return "a text"
        case Range():
            return "a range"
        case tuple():
            return f"a list of {len(value)}"
        case _:
            return f"the component `{value.tag}`" if value.tag else "a record"
