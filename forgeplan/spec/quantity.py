"""What is an exact number with a unit, and which units are of one kind?"""

from __future__ import annotations

from fractions import Fraction

from attrs import frozen


@frozen
class Dimension:
    """Product of base dimensions: ((name, exponent), …), sorted by name, no zero exponents.

    Bases: tokens, sequences, steps, runs (counted things), bytes, seconds, flop, share. A share is kept apart from
    plain numbers so that `85%` and `0.85` are not mistaken for one another; arithmetic treats it as a number.
    """

    exponents: tuple[tuple[str, int], ...] = ()

    def __str__(self) -> str:
        if not self.exponents:
            return "a plain number"
        above = "·".join(_power(b, e) for b, e in self.exponents if e > 0) or "1"
        below = "·".join(_power(b, -e) for b, e in self.exponents if e < 0)
        return f"{above}/{below}" if below else above


def _power(base: str, exponent: int) -> str:
    return base if exponent == 1 else f"{base}^{exponent}"


def _base(name: str) -> Dimension:
    return Dimension(((name, 1),))


NUMBER = Dimension()
SHARE = _base("share")
TOKENS = _base("tokens")
SEQUENCES = _base("sequences")
STEPS = _base("steps")
RUNS = _base("runs")
BYTES = _base("bytes")
SECONDS = _base("seconds")
BYTES_PER_SECOND = Dimension((("bytes", 1), ("seconds", -1)))
FLOP_PER_SECOND = Dimension((("flop", 1), ("seconds", -1)))

COUNTED = frozenset({TOKENS, SEQUENCES, STEPS, RUNS})


@frozen
class Quantity:
    """An exact amount in base units: bytes, seconds, FLOP, tokens …; a share of 85 % has amount 17/20."""

    amount: int | Fraction
    dimension: Dimension = NUMBER
