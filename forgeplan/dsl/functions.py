"""What do `min max sum len ceil floor round sqrt log2` compute? Exactly, where that is possible.

`sqrt` and `log2` of other numbers are rounded down at the 64th binary place, by integer arithmetic alone, so that every
machine computes the same.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

from forgeplan.dsl.operators import Undefined, binary, compare
from forgeplan.dsl.values import Range, RecordLike, Text, Value, kind_of, number, show, whole_if_possible
from forgeplan.spec.quantity import NUMBER, Quantity

_PLACES = 64


def call(name: str, arguments: list[Value]) -> Value:
    """Raises Undefined or OutOfBounds."""
    least, most, function = FUNCTIONS[name]
    if not least <= len(arguments) <= most:
        wanted = "one argument" if most == 1 else "at least one argument"
        raise Undefined(f"`{name}` takes {wanted}, and {len(arguments)} are given")
    return function(name, arguments)


def _numbers(name: str, arguments: list[Value]) -> list[Quantity]:
    """The numbers given one by one or as one list."""
    given: list[Value] = list(arguments[0]) if len(arguments) == 1 and isinstance(arguments[0], tuple) else arguments
    found = [v for v in given if isinstance(v, Quantity)]
    for v in given:
        if not isinstance(v, Quantity):
            raise Undefined(f"`{name}` takes numbers, not {kind_of(v)}")
    return found


def _extreme(name: str, arguments: list[Value]) -> Value:
    numbers = _numbers(name, arguments)
    if not numbers:
        raise Undefined(f"`{name}` of an empty list")
    best = numbers[0]
    for other in numbers[1:]:
        if compare("<" if name == "min" else ">", other, best):
            best = other
    return best


def _sum(name: str, arguments: list[Value]) -> Value:
    numbers = _numbers(name, arguments)
    total: Value = numbers[0] if numbers else number(0)
    for other in numbers[1:]:
        total = binary("+", total, other)
    return total


def _len(name: str, arguments: list[Value]) -> Value:
    value = arguments[0]
    if isinstance(value, tuple | Text):
        return number(len(value))
    if isinstance(value, RecordLike):
        return number(len(value.names()))
    if isinstance(value, Range):
        return number(math.floor(value.high.amount - value.low.amount) + 1)
    raise Undefined(f"`len` counts the items of a list, record or text, not of {kind_of(value)}")


def _rounded(name: str, arguments: list[Value]) -> Value:
    value = arguments[0]
    if not isinstance(value, Quantity):
        raise Undefined(f"`{name}` takes a number, not {kind_of(value)}")
    amount = value.amount
    rounded = math.ceil(amount) if name == "ceil" else math.floor(amount) if name == "floor" else round(amount)
    return Quantity(rounded, value.dimension)


def _plain(name: str, value: Value) -> Fraction:
    if not isinstance(value, Quantity) or value.dimension != NUMBER:
        raise Undefined(f"`{name}` takes a plain number, not {kind_of(value)}")
    return Fraction(value.amount)


def _sqrt(name: str, arguments: list[Value]) -> Value:
    x = _plain(name, arguments[0])
    if x < 0:
        raise Undefined(f"`sqrt({show(number(x))})` of a negative number")
    above, below = math.isqrt(x.numerator), math.isqrt(x.denominator)
    if above**2 == x.numerator and below**2 == x.denominator:
        return number(Fraction(above, below))
    return number(Fraction(math.isqrt((x.numerator << 2 * _PLACES) // x.denominator), 1 << _PLACES))


def _log2(name: str, arguments: list[Value]) -> Value:
    x = _plain(name, arguments[0])
    if x <= 0:
        raise Undefined(f"`log2({show(number(x))})` of a number that is not above zero")
    whole = x.numerator.bit_length() - x.denominator.bit_length()
    if x < Fraction(2) ** whole:
        whole -= 1
    mantissa = x / Fraction(2) ** whole
    if mantissa == 1:
        return number(whole)
    scale = 2 * _PLACES
    m, digits = (mantissa.numerator << scale) // mantissa.denominator, 0
    for _ in range(_PLACES):
        m = (m * m) >> scale
        bit = m >> (scale + 1)
        digits = 2 * digits + bit
        m >>= bit
    return number(whole_if_possible(whole + Fraction(digits, 1 << _PLACES)))


_MANY = 65_536
FUNCTIONS: dict[str, tuple[int, int, Callable[[str, list[Value]], Value]]] = {
    "min": (1, _MANY, _extreme),
    "max": (1, _MANY, _extreme),
    "sum": (1, _MANY, _sum),
    "len": (1, 1, _len),
    "ceil": (1, 1, _rounded),
    "floor": (1, 1, _rounded),
    "round": (1, 1, _rounded),
    "sqrt": (1, 1, _sqrt),
    "log2": (1, 1, _log2),
}
