"""How is a value of a foreign configuration written in a plan, and which values are of the right kind?"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from decimal import Decimal
from fractions import Fraction
from typing import Any

from attrs import frozen

from forgeplan.dsl.units import show_amount, show_quantity
from forgeplan.spec.quantity import SEQUENCES, SHARE, STEPS, TOKENS, Dimension, Quantity

_ESCAPED = {"\\": "\\\\", '"': '\\"', "$": "\\$", "\n": "\\n", "\t": "\\t", "\r": "\\r"}


@frozen
class Kind:
    """A kind of value: what it is called in a message, how it is read, and how a plan writes it."""

    name: str
    read: Callable[[Any], Any]
    """The value as Python's own; None for what is not of this kind."""
    spell: Callable[[Any], str]
    """Of a value that was read."""


def quoted(text: str) -> str:
    """A string literal of the language."""
    return '"' + "".join(_ESCAPED.get(c, c if c.isprintable() else f"\\u{{{ord(c):x}}}") for c in text) + '"'


def counted(dimension: Dimension) -> Callable[[int | Fraction], str]:
    return lambda amount: show_quantity(Quantity(amount, dimension))


def whole(value: Any) -> int | None:
    """`1000`, and `1e3`, which some write."""
    number = real(value)
    return int(number) if number is not None and number.denominator == 1 else None


def real(value: Any) -> Fraction | None:
    """A finite number, exactly as it was written."""
    if isinstance(value, bool) or not isinstance(value, int | Decimal):
        return None
    if isinstance(value, Decimal) and (not value.is_finite() or abs(value.adjusted()) > 400):
        return None
    return Fraction(value)


def flag(value: Any) -> bool | None:
    return value if isinstance(value, bool) else None


def text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def texts(value: Any) -> list[str] | None:
    """A list of strings; older files write one string with commas."""
    if isinstance(value, str):
        return [part.strip() for part in value.split(",") if part.strip()]
    return list(value) if isinstance(value, list) and all(isinstance(v, str) for v in value) else None


def _list(items: list[str]) -> str:
    return f"[{', '.join(map(quoted, items))}]"


WHOLE = Kind("a whole number", whole, show_amount)
REAL = Kind("a number", real, show_amount)
FLAG = Kind("true or false", flag, lambda value: "true" if value else "false")
TEXT = Kind("text", text, quoted)
TEXTS = Kind("a list of strings", texts, _list)
TOKEN_COUNT = Kind("a whole number", whole, counted(TOKENS))
STEP_COUNT = Kind("a whole number", whole, counted(STEPS))
SEQUENCE_COUNT = Kind("a whole number", whole, counted(SEQUENCES))
PORTION = Kind("a number", real, counted(SHARE))


@frozen
class Members:
    """Words of the source, each with the spelling of the plan; other words have no equivalent."""

    words: Mapping[str, str]

    def get(self, value: Any) -> str | None:
        return self.words.get(value) if isinstance(value, str) else None


def shortened(value: Any) -> str:
    """A value of the source for the report: as TOML writes it, at most 60 characters."""
    shown = _shown(value)
    return shown if len(shown) <= 60 else f"{shown[:57]}…"


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return f'"{"".join(c if c.isprintable() else repr(c)[1:-1] for c in value)}"'
    if isinstance(value, list):
        return f"[{', '.join(map(_shown, value))}]"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{k} = {_shown(v)}' for k, v in value.items())}}}"
    return "null" if value is None else str(value).lower()
