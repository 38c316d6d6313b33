"""How are numbers, lists and values written in messages and in explain?"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any

from forgeplan.diagnostics.counted import plural
from forgeplan.diagnostics.source import Sources
from forgeplan.diagnostics.span import Span
from forgeplan.spec import types as t
from forgeplan.spec.quantity import (
    BYTES,
    FLOP_PER_SECOND,
    NUMBER,
    SECONDS,
    SEQUENCES,
    SHARE,
    STEPS,
    TOKENS,
    Dimension,
    Quantity,
)

__all__ = [
    "amount",
    "bytes_text",
    "count",
    "decimal",
    "fixed",
    "listing",
    "plan_text",
    "plural",
    "rounded",
    "scientific",
    "written_at",
]

_BINARY = ((2**40, "Ti"), (2**30, "Gi"), (2**20, "Mi"), (2**10, "Ki"))
_DECIMAL_BYTES = ((10**12, "TB"), (10**9, "GB"), (10**6, "MB"), (10**3, "kB"))
_WORDS = {TOKENS: "token", SEQUENCES: "sequence", STEPS: "step"}
_SECONDS = ((3600, "h"), (60, "min"), (1, "s"))


def count(number: int | Fraction) -> str:
    """A number for a person: `2,097,152`, `0.85`; a fraction that does not end is written as one."""
    if isinstance(number, int) or number.denominator == 1:
        return f"{int(number):,}"
    return decimal(number)


def decimal(number: Fraction) -> str:
    """The shortest exact decimal of a number if it has one of at most 12 digits, else `p/q`; `3e-4` below 1e-3."""
    if 0 < abs(number) < Fraction(1, 1000):
        return scientific(number)
    for digits in range(1, 13):
        if (number * 10**digits).denominator == 1:
            return fixed(number, digits).replace(",", "")
    return f"{number.numerator}/{number.denominator}"


def scientific(number: int | Fraction, digits: int = 6) -> str:
    """`3e-4`: a rounded number of any size."""
    if not number:
        return "0"
    mantissa, _, exponent = f"{Decimal(number.numerator) / Decimal(number.denominator):.{digits}e}".partition("e")
    return f"{mantissa.rstrip('0').rstrip('.') if '.' in mantissa else mantissa}e{int(exponent)}"


def fixed(number: int | Fraction, digits: int) -> str:
    """A rounded number of any size with so many decimals: `1,234.50`."""
    scaled = round(Fraction(number) * 10**digits)
    whole, rest = divmod(abs(scaled), 10**digits)
    return f"{'-' if scaled < 0 else ''}{whole:,}" + (f".{rest:0{digits}d}" if digits else "")


def rounded(number: int | Fraction, digits: int = 1) -> str:
    """A whole number as it is, any other with one decimal or so: `76,294`, `2.4`."""
    return count(number) if number.denominator == 1 else fixed(number, digits)


def bytes_text(amount: int | Fraction) -> str:
    """`24.3 GiB`, `1,536 bytes`: three digits or so, for a person."""
    for size, unit in _BINARY:
        if amount >= size:
            value = Fraction(amount) / size
            return f"{fixed(value, 2 if value < 10 else 1)} {unit}B"
    return f"{count(amount)} byte{'' if amount == 1 else 's'}"


def listing(values: Iterable[Any], last: str = ", ") -> str:
    """`1, 2, 4`."""
    texts = [str(v) for v in values]
    return ", ".join(texts[:-1]) + last + texts[-1] if len(texts) > 1 else "".join(texts)


def written_at(span: Span, sources: Sources) -> str:
    """`file:line:column` of what a file wrote; nothing for the command line and the schema."""
    return "" if span.file.startswith("<") or sources.get(span.file) is None else sources.place(span)


def plan_text(value: Any, type_: t.FieldType | None = None) -> str:
    """A value in the plan language, as one would write it: `57_344 tokens`, `85%`, `[0.9, 0.95]`, `"a.txt"`."""
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Quantity):
        return amount(value.amount, value.dimension)
    if isinstance(value, int | Fraction):
        return amount(value, _dimension(type_))
    if isinstance(value, str):
        return f'"{value}"' if _is_text(type_) else value
    if isinstance(value, tuple | list):
        item = next((a.item for a in getattr(type_, "alternatives", (type_,)) if isinstance(a, t.ListOf)), None)
        return f"[{', '.join(plan_text(v, item) for v in value)}]"
    if isinstance(value, dict):
        inner = ", ".join(f"{k} = {plan_text(v)}" for k, v in value.items())
        return f"{{ {inner} }}" if inner else "{}"
    return str(getattr(value, "tag", value))


def amount(value: int | Fraction, dimension: Dimension) -> str:
    """An exact amount with its unit in the plan language."""
    if dimension == NUMBER:
        return _number(value)
    if dimension == SHARE:
        return f"{_number(Fraction(value) * 100)}%"
    if dimension in _WORDS:
        return f"{_number(value)} {_WORDS[dimension]}{'' if value == 1 else 's'}"
    if dimension == BYTES:
        return _scaled(value, [*((size, f"{unit}B") for size, unit in _BINARY), *_DECIMAL_BYTES], "B")
    if dimension == SECONDS:
        return _scaled(value, list(_SECONDS), "s")
    if dimension == FLOP_PER_SECOND:
        return _scaled(value, [(10**15, "PFLOP/s"), (10**12, "TFLOP/s"), (10**9, "GFLOP/s")], "FLOP/s")
    return f"{_number(value)} {dimension}"


def _scaled(value: int | Fraction, units: Sequence[tuple[int, str]], base: str) -> str:
    for size, unit in units:
        if value >= size and Fraction(value) % size == 0:
            return f"{_number(Fraction(value) / size)}{unit}"
    return f"{_number(value)}{base}"


def _number(value: int | Fraction) -> str:
    if value.denominator != 1:
        return decimal(Fraction(value))
    return f"{int(value):_}" if abs(int(value)) >= 10_000 else str(int(value))


def _dimension(type_: t.FieldType | None) -> Dimension:
    if isinstance(type_, t.AnyOf):
        return next((d for a in type_.alternatives if (d := _dimension(a)) != NUMBER), NUMBER)
    return type_.dimension if isinstance(type_, t.Measure) else NUMBER


def _is_text(type_: t.FieldType | None) -> bool:
    if isinstance(type_, t.AnyOf):
        return any(_is_text(a) for a in type_.alternatives)
    return isinstance(type_, t.Text | t.PathText)
