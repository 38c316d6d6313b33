"""How large may what an expression computes become? Checked before it is computed."""

from __future__ import annotations

from fractions import Fraction

from forgeplan.diagnostics.codes import code

TOO_LARGE = code(
    "FP0314",
    "evaluation is bounded: 4,096 bits a number, 65,536 list items, 64 KiB a string, 10^6 operations a file, "
    "1,000 nested references",
)

MAX_BITS = 4_096
MAX_ITEMS = 65_536
MAX_CHARACTERS = 65_536
MAX_OPERATIONS = 1_000_000
MAX_DEPTH = 1_000


class OutOfBounds(Exception):
    """Says in words which bound is exceeded."""


def bits(amount: int | Fraction) -> int:
    if isinstance(amount, int):
        return amount.bit_length()
    return max(amount.numerator.bit_length(), amount.denominator.bit_length())


def check_bits(needed: int) -> None:
    if needed > MAX_BITS:
        raise OutOfBounds(f"the result needs about {needed:,} bits, and {MAX_BITS:,} is the bound for a number")


def check_items(count: int) -> None:
    if count > MAX_ITEMS:
        raise OutOfBounds(f"the list has {count:,} items, and {MAX_ITEMS:,} is the bound")


def check_text(length: int) -> None:
    if length > MAX_CHARACTERS:
        raise OutOfBounds(f"the text has {length:,} characters, and {MAX_CHARACTERS:,} is the bound")
