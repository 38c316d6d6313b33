"""What do `+ - * / // % **`, comparisons and `in` mean for values with dimensions? Exact and bounded."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from operator import eq, ge, gt, le, lt, ne
from typing import Any

from forgeplan.dsl.bounds import OutOfBounds, bits, check_bits, check_items
from forgeplan.dsl.units import COUNTED_WORDS, power, times
from forgeplan.dsl.values import Range, RecordLike, Symbol, Text, Value, kind_of, show, whole_if_possible
from forgeplan.spec.quantity import NUMBER, SHARE, Dimension, Quantity


class Undefined(Exception):
    """Says in words why the operation has no result for its operands; the second argument is a help text, or ""."""

    def __init__(self, reason: str, help: str = "") -> None:
        super().__init__(reason)
        self.help = help


def binary(operator: str, left: Value, right: Value) -> Value:
    """`left operator right`. Raises Undefined or OutOfBounds."""
    if operator == "..":
        return _range(left, right)
    if operator == "+" and isinstance(left, tuple) and isinstance(right, tuple):
        check_items(len(left) + len(right))
        return left + right
    if not (isinstance(left, Quantity) and isinstance(right, Quantity)):
        help = 'texts are put together by `"${a}${b}"`' if isinstance(left, Text) or isinstance(right, Text) else ""
        raise Undefined(f"`{operator}` is not defined for {kind_of(left)} and {kind_of(right)}", help)
    return _ARITHMETIC[operator](left, right)


def negate(value: Value) -> Value:
    if not isinstance(value, Quantity):
        raise Undefined(f"`-` is not defined for {kind_of(value)}")
    return Quantity(-value.amount, value.dimension)


def compare(operator: str, left: Value, right: Value) -> bool:
    """`==` and `!=` for values of one kind, the others for numbers of one dimension. Raises Undefined."""
    if isinstance(left, Quantity) and isinstance(right, Quantity):
        if not comparable(left.dimension, right.dimension):
            raise Undefined(f"{show(left)} and {show(right)} have no common measure: {_both(left, right)}")
        return _COMPARISONS[operator](left.amount, right.amount)
    if operator not in ("==", "!="):
        raise Undefined(f"`{operator}` compares numbers, not {kind_of(left)} and {kind_of(right)}")
    return same(left, right) == (operator == "==")


def comparable(a: Dimension, b: Dimension) -> bool:
    """Equal dimensions, a share and a number, or a counted thing and a plain count of it."""
    counts = (NUMBER, SHARE)
    return (
        a == b
        or (a in counts and b in counts)
        or (a == NUMBER and b in COUNTED_WORDS)
        or (b == NUMBER and a in COUNTED_WORDS)
    )


def same(left: Value, right: Value) -> bool:
    """Equality of values. Raises Undefined where both are of kinds that are never equal."""
    left, right = (Symbol(v.tag) if isinstance(v, RecordLike) and v.tag else v for v in (left, right))
    if left is None or right is None:
        return left is right
    if isinstance(left, Quantity) and isinstance(right, Quantity):
        return compare("==", left, right)
    if isinstance(left, tuple) and isinstance(right, tuple):
        return len(left) == len(right) and all(same(a, b) for a, b in zip(left, right, strict=True))
    if type(left) is not type(right):
        help = f"members are written bare: `{left if isinstance(left, Text) else right}`"
        is_quoted = {type(left), type(right)} == {Text, Symbol}
        raise Undefined(f"{kind_of(left)} and {kind_of(right)} are never equal", help if is_quoted else "")
    return left == right


def contains(item: Value, container: Value) -> bool:
    """`item in container`, for lists, ranges and the names of a record. Raises Undefined."""
    if isinstance(container, tuple):
        return any(same(item, other) for other in container)
    if isinstance(container, Range) and isinstance(item, Quantity):
        return compare("<=", container.low, item) and compare("<=", item, container.high)
    if isinstance(container, RecordLike) and isinstance(item, Symbol | Text):
        return (item.name if isinstance(item, Symbol) else str(item)) in container.names()
    raise Undefined(f"`in` looks into a list, a range or a record, and this is {kind_of(container)}")


def _both(left: Quantity, right: Quantity) -> str:
    return f"{left.dimension} against {right.dimension}"


def _range(left: Value, right: Value) -> Range:
    if not (isinstance(left, Quantity) and isinstance(right, Quantity)):
        raise Undefined(f"a range goes from number to number, not from {kind_of(left)} to {kind_of(right)}")
    if left.dimension != right.dimension:
        raise Undefined(f"the ends of a range have one dimension: {_both(left, right)}")
    return Range(left, right)


def _sum(left: Quantity, right: Quantity, sign: int) -> Quantity:
    if left.dimension == right.dimension:
        dimension = left.dimension
    elif {left.dimension, right.dimension} == {NUMBER, SHARE}:
        dimension = SHARE
    else:
        word = "added" if sign > 0 else "subtracted"
        raise Undefined(f"{show(left)} and {show(right)} cannot be {word}: {_both(left, right)}")
    check_bits(max(bits(left.amount), bits(right.amount)))
    total = left.amount + sign * right.amount
    check_bits(bits(total))
    return Quantity(whole_if_possible(total), dimension)


def _product(left: Quantity, right: Quantity) -> Quantity:
    check_bits(bits(left.amount) + bits(right.amount) - 1)
    return Quantity(whole_if_possible(left.amount * right.amount), times(left.dimension, right.dimension))


def _quotient(left: Quantity, right: Quantity) -> Quantity:
    _nonzero(left, "/", right)
    check_bits(bits(left.amount) + bits(right.amount) - 1)
    return Quantity(whole_if_possible(Fraction(left.amount) / right.amount), times(left.dimension, right.dimension, -1))


def _floor_quotient(left: Quantity, right: Quantity) -> Quantity:
    _nonzero(left, "//", right)
    return Quantity(left.amount // right.amount, times(left.dimension, right.dimension, -1))


def _remainder(left: Quantity, right: Quantity) -> Quantity:
    if right.dimension not in (left.dimension, NUMBER):
        raise Undefined(f"`{show(left)} % {show(right)}` has no meaning: {_both(left, right)}")
    _nonzero(left, "%", right)
    return Quantity(whole_if_possible(left.amount % right.amount), left.dimension)


def _power(left: Quantity, right: Quantity) -> Quantity:
    exponent = right.amount
    if right.dimension != NUMBER or not isinstance(exponent, int):
        raise Undefined(f"an exponent is a plain whole number, not {show(right)}", "`sqrt(x)` is the square root")
    if left.amount == 0 and exponent < 0:
        raise Undefined(f"`0 ** {exponent}` divides by zero")
    if left.amount not in (0, 1, -1):
        check_bits((bits(left.amount) - 1) * abs(exponent) + 1)
    elif abs(exponent) > 2**64:
        raise OutOfBounds("the exponent is larger than 2^64")
    base = left.amount if exponent >= 0 else Fraction(left.amount)
    return Quantity(whole_if_possible(base**exponent), power(left.dimension, exponent))


def _nonzero(left: Quantity, operator: str, right: Quantity) -> None:
    if right.amount == 0:
        raise Undefined(f"`{show(left)} {operator} {show(right)}` divides by zero")


_ARITHMETIC: dict[str, Callable[[Quantity, Quantity], Quantity]] = {
    "+": lambda a, b: _sum(a, b, 1),
    "-": lambda a, b: _sum(a, b, -1),
    "*": _product,
    "/": _quotient,
    "//": _floor_quotient,
    "%": _remainder,
    "**": _power,
}
_COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {"==": eq, "!=": ne, "<": lt, "<=": le, ">": gt, ">=": ge}
