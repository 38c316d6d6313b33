"""Which values may a field of a plan take?

A type only describes. The structurer (dsl) turns an evaluated value into the Python value named on each class below and
reports what does not fit; hover, reference pages and JSON schema print the same description.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from fractions import Fraction

from attrs import frozen

from forgeplan.spec.quantity import NUMBER, SECONDS, SEQUENCES, SHARE, STEPS, TOKENS, Dimension


class FieldType(ABC):
    """Base of all field types."""

    @abstractmethod
    def describe(self) -> str:
        """The type as a person names it."""


@frozen
class Interval(FieldType):
    """A range such as `[1, )`, `(0, 1]`; None is unbounded."""

    low: int | Fraction | None
    high: int | Fraction | None
    low_open: bool = False
    high_open: bool = False

    @classmethod
    def parse(cls, text: str) -> Interval:
        low, high = (part.strip() for part in text[1:-1].split(","))
        return cls(_exact(low), _exact(high), text[0] == "(", text[-1] == ")")

    def contains(self, value: int | Fraction) -> bool:
        if self.low is not None and (value < self.low or (self.low_open and value == self.low)):
            return False
        return self.high is None or not (value > self.high or (self.high_open and value == self.high))

    def describe(self) -> str:
        if self.high is None and self.low is not None:
            return f"{'>' if self.low_open else '≥'} {self.low}"
        return f"{'(' if self.low_open else '['}{self.low}, {self.high}{')' if self.high_open else ']'}"


def _exact(text: str) -> int | Fraction | None:
    """A bound as written; an int where it is whole, which is compared many times faster."""
    number = Fraction(text) if text else None
    return int(number) if number is not None and number.denominator == 1 else number


@frozen
class Measure(FieldType):
    """A number of one dimension → int if `whole`, else Fraction, in base units; the dimension is dropped."""

    dimension: Dimension = NUMBER
    whole: bool = False

    def describe(self) -> str:
        if self.dimension == NUMBER:
            return "whole number" if self.whole else "number"
        return str(self.dimension)


@frozen
class Measures(FieldType):
    """A number of one of several dimensions → Quantity, as the dimension carries meaning."""

    dimensions: tuple[Dimension, ...]

    def describe(self) -> str:
        return " or ".join(map(str, self.dimensions))


@frozen
class Text(FieldType):
    """→ str."""

    def describe(self) -> str:
        return "text"


@frozen
class PathText(FieldType):
    """→ str, relative to the file that wrote it (the structurer makes it relative to the project)."""

    output: bool = False

    def describe(self) -> str:
        return "path"


@frozen
class Bool(FieldType):
    """→ bool."""

    def describe(self) -> str:
        return "true or false"


@frozen
class OneOf(FieldType):
    """A bare member → str. `aliases` are foreign spellings that get a suggestion, never acceptance.

    `refused` are words that other tools know and this one has no member for, each with what to do instead.
    """

    members: tuple[str, ...]
    aliases: tuple[tuple[str, str], ...] = ()
    refused: tuple[tuple[str, str], ...] = ()

    def describe(self) -> str:
        return " | ".join(self.members)


@frozen
class NameIn(FieldType):
    """The bare name of an entry of a map of the plan (`source = web`) → str."""

    map: str

    def describe(self) -> str:
        return f"name of one of {self.map}"


@frozen
class Nothing(FieldType):
    """`none` → None."""

    def describe(self) -> str:
        return "none"


@frozen
class ListOf(FieldType):
    """→ tuple. A `keyed` list takes each component once and is addressed by its name (`apply.recompute.mode`)."""

    item: FieldType
    length: int | None = None
    keyed: bool = False

    def describe(self) -> str:
        return (
            f"list of {self.item.describe()}"
            if self.length is None
            else f"list of {self.length} {self.item.describe()}"
        )


@frozen
class MapOf(FieldType):
    """A record with keys of the author's choice → dict[str, …]; or of the keys of another map of the plan, `keys`."""

    value: FieldType
    keys: str = ""

    def describe(self) -> str:
        return f"map of {self.value.describe()}"


@frozen
class NodesOf(FieldType):
    """Nodes declared as `kind name { … }` → dict[str, block]; the field's own name is the node kind."""

    block: type

    def describe(self) -> str:
        return f"{self.block.__name__.lower()} nodes"


@frozen
class Block(FieldType):
    """A record with fixed fields → instance of the attrs class."""

    block: type

    def describe(self) -> str:
        return "record"


@frozen
class Component(FieldType):
    """A tagged record of a component kind, `adamw { … }` or bare `adamw` → instance of the component's attrs class."""

    kind: str

    def describe(self) -> str:
        return self.kind.replace("_", " ")


@frozen
class AnyOf(FieldType):
    """The first alternative that fits."""

    alternatives: tuple[FieldType, ...]

    def describe(self) -> str:
        return " | ".join(a.describe() for a in self.alternatives)


COUNT = Measure(NUMBER, whole=True)
REAL = Measure(NUMBER)
PORTION = Measure(SHARE)
TOKEN_COUNT = Measure(TOKENS, whole=True)
SEQUENCE_COUNT = Measure(SEQUENCES, whole=True)
STEP_COUNT = Measure(STEPS, whole=True)
DURATION = Measure(SECONDS)
POINT = Measures((STEPS, TOKENS, SECONDS, SHARE))
"""A point in training: the first step boundary at or after it; a share is one of the budget."""
SPAN_OF_SCHEDULE = Measures((STEPS, TOKENS, SHARE))
"""A part of a schedule; a share is one of its length."""
AUTO = OneOf(("auto",))
NONE = Nothing()


def optional(type: FieldType) -> AnyOf:
    return AnyOf((type, NONE))


def or_auto(type: FieldType) -> AnyOf:
    return AnyOf((type, AUTO))
