"""Which units can stand at a number, what are they worth, and how do dimensions combine?"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

from forgeplan.spec.quantity import (
    BYTES,
    BYTES_PER_SECOND,
    FLOP_PER_SECOND,
    NUMBER,
    RUNS,
    SECONDS,
    SEQUENCES,
    SHARE,
    STEPS,
    TOKENS,
    Dimension,
    Quantity,
)

FLOP = Dimension((("flop", 1),))

_DECIMAL = {"": 1, "k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12, "P": 10**15, "E": 10**18}
_BINARY = {"Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40, "Pi": 2**50}
_COUNT = {"k": 10**3, "M": 10**6, "B": 10**9, "T": 10**12, "Ki": 2**10, "Mi": 2**20, "Gi": 2**30}

COUNTED_WORDS = {TOKENS: "tokens", SEQUENCES: "sequences", STEPS: "steps", RUNS: "runs"}
_DURATIONS = {
    "us": Fraction(1, 10**6),
    "ms": Fraction(1, 1000),
    "s": Fraction(1),
    "min": Fraction(60),
    "h": Fraction(3600),
    "d": Fraction(86400),
}


def _table() -> Iterator[tuple[str, Fraction, Dimension]]:
    yield "%", Fraction(1, 100), SHARE
    for dimension, word in COUNTED_WORDS.items():
        yield word, Fraction(1), dimension
        yield word.removesuffix("s"), Fraction(1), dimension
    for word, seconds in _DURATIONS.items():
        yield word, seconds, SECONDS
    for prefix, factor in {**_DECIMAL, **_BINARY}.items():
        if prefix:
            yield f"{prefix}B", Fraction(factor), BYTES
            yield f"{prefix}B/s", Fraction(factor), BYTES_PER_SECOND
    yield "bytes", Fraction(1), BYTES
    yield "byte", Fraction(1), BYTES
    for prefix, factor in _DECIMAL.items():
        yield f"{prefix}FLOP", Fraction(factor), FLOP
        yield f"{prefix}FLOP/s", Fraction(factor), FLOP_PER_SECOND


UNITS: dict[str, tuple[Fraction, Dimension]] = {unit: (factor, dimension) for unit, factor, dimension in _table()}


def units_of(dimension: Dimension) -> list[str]:
    """The units to offer for a dimension, with their size where it could be mistaken."""
    if dimension in COUNTED_WORDS:
        return [COUNTED_WORDS[dimension]]
    return {
        SHARE: ["%"],
        BYTES: ["GiB (2^30 bytes)", "GB (10^9 bytes)", "MiB", "MB"],
        BYTES_PER_SECOND: ["GB/s (10^9 bytes)", "GiB/s (2^30 bytes)"],
        SECONDS: ["s", "min", "h", "d"],
        FLOP_PER_SECOND: ["TFLOP/s"],
    }.get(dimension, [])


def multiplier_like(unit: str) -> str | None:
    """The multiplier of a count that a word in the wrong case stands for: `Mi` for `mi`."""
    return next((known for known in _COUNT if known.lower() == unit.lower()), None)


def times(a: Dimension, b: Dimension, sign: int = 1) -> Dimension:
    """Dimension of a product, or of a quotient where `sign` is -1; beside another dimension a share is a number."""
    if a == NUMBER and b == SHARE:
        return SHARE if sign > 0 else NUMBER
    if SHARE in (a, b) and (a, b) != (SHARE, NUMBER):
        if a == b:
            return SHARE if sign > 0 else NUMBER
        a, b = (NUMBER if d == SHARE else d for d in (a, b))
    exponents = dict(a.exponents)
    for base, exponent in b.exponents:
        exponents[base] = exponents.get(base, 0) + sign * exponent
    return Dimension(tuple(sorted((base, e) for base, e in exponents.items() if e)))


def power(dimension: Dimension, exponent: int) -> Dimension:
    if dimension == SHARE:
        return SHARE if exponent > 0 else NUMBER
    return Dimension(tuple((base, e * exponent) for base, e in dimension.exponents if e * exponent))


def show_quantity(quantity: Quantity) -> str:
    """The shortest exact spelling that the language reads back, as far as there is one."""
    amount, dimension = quantity.amount, quantity.dimension
    if dimension == SHARE:
        return show_amount(Fraction(amount) * 100) + "%"
    if dimension in COUNTED_WORDS:
        word = COUNTED_WORDS[dimension]
        return f"{_multiplied(amount, _COUNT)} {word.removesuffix('s') if amount == 1 else word}"
    if dimension == NUMBER:
        return show_amount(amount)
    spellings = [
        (number.denominator != 1, f"{show_amount(number)}{' ' if unit == 'bytes' else ''}{unit}")
        for unit, (factor, of) in reversed(UNITS.items())
        if of == dimension and unit not in ("byte", "us") and (number := Fraction(amount) / factor) is not None
    ]
    return min(spellings, key=lambda s: (s[0], len(s[1])), default=(True, f"{show_amount(amount)} {dimension}"))[1]


def _multiplied(amount: int | Fraction, multipliers: dict[str, int]) -> str:
    spellings = [show_amount(amount)]
    for name, factor in multipliers.items():
        if amount and Fraction(amount) % factor == 0:
            spellings.append(show_amount(Fraction(amount) / factor) + name)
    return min(spellings, key=len)


def show_amount(amount: int | Fraction) -> str:
    """A number in decimal notation, exact; `p/q` where decimals would not end."""
    amount = Fraction(amount)
    if amount.denominator == 1:
        return _grouped(amount.numerator)
    digits = _decimal_places(amount.denominator)
    if digits is None or digits > 40:
        return f"{_grouped(amount.numerator)}/{_grouped(amount.denominator)}"
    scaled = amount.numerator * 10**digits // amount.denominator
    sign, body = ("-" if scaled < 0 else ""), str(abs(scaled))
    if abs(amount) < Fraction(1, 1000):
        mantissa = body if len(body) == 1 else f"{body[0]}.{body[1:]}"
        return f"{sign}{mantissa}e-{digits - len(body) + 1}"
    body = body.rjust(digits + 1, "0")
    return f"{sign}{_grouped(int(body[:-digits]))}.{body[-digits:]}"


def _grouped(whole: int) -> str:
    return f"{whole:_}" if abs(whole) >= 10_000 else str(whole)


def _decimal_places(denominator: int) -> int | None:
    twos = fives = 0
    while denominator % 2 == 0:
        denominator, twos = denominator // 2, twos + 1
    while denominator % 5 == 0:
        denominator, fives = denominator // 5, fives + 1
    return max(twos, fives) if denominator == 1 else None
