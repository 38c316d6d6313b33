"""What does the spelling of a number say? Exact amounts only, never floats."""

from __future__ import annotations

import re
from fractions import Fraction
from functools import lru_cache

from attrs import frozen

MULTIPLIERS: dict[str, int] = {
    "k": 10**3, "M": 10**6, "B": 10**9, "T": 10**12,
    "Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40,
}  # fmt: skip

MAX_DIGITS = 1_233
"""Of a number written out: 4,096 bits."""

_SPELLING = re.compile(
    r"(?P<digits>\d[\d_]*)(?:\.(?P<decimals>[\d_]+))?(?:[eE](?P<exponent>[+-]?\d+))?(?P<suffix>%|[A-Za-z].*)?", re.ASCII
)
_CRUDE = re.compile(
    r"(?P<digits>[\d_]*)(?P<point>\.(?P<decimals>[\d_]*))?"
    r"(?:[eE](?P<exponent>[+-]?\d[\d_]*))?(?P<suffix>%|[A-Za-z/]*)",
    re.ASCII,
)
_RADIX = re.compile(r"0(?:[xX](?P<hex>[\da-fA-F_]+)|[bB](?P<bin>[01_]+)|[oO](?P<oct>[0-7_]+))", re.ASCII)


@frozen
class Reading:
    """`amount` with multipliers applied; `spelling` without the unit; `unit` as glued to the digits, or None."""

    amount: int | Fraction
    spelling: str
    unit: str | None


@lru_cache(maxsize=4096)
def read_number(spelling: str) -> Reading | None:
    """The meaning of a well-formed number token; None if it needs more than `MAX_DIGITS` digits."""
    match = _SPELLING.fullmatch(spelling)
    if match is None:
        return None
    digits = match["digits"].replace("_", "")
    decimals = (match["decimals"] or "").replace("_", "")
    exponent = match["exponent"] or "0"
    if len(digits) + len(decimals) > MAX_DIGITS or len(exponent) > 6 or abs(int(exponent)) > MAX_DIGITS:
        return None
    shift = int(exponent) - len(decimals)
    whole = int(digits + decimals)
    amount = whole * 10**shift if shift >= 0 else _simplest(Fraction(whole, 10**-shift))
    suffix = match["suffix"]
    if suffix in MULTIPLIERS:
        return Reading(_simplest(amount * MULTIPLIERS[suffix]), spelling, None)
    return Reading(amount, spelling[: match.start("suffix")] if suffix else spelling, suffix)


def _simplest(amount: int | Fraction) -> int | Fraction:
    return int(amount) if amount.denominator == 1 else amount


def canonical(spelling: str) -> str | None:
    """How a malformed number is rightly written, if that can be told: `.5e-3` is `0.5e-3`, `0x1F` is `31`."""
    radix = _RADIX.fullmatch(spelling)
    if radix:
        base = {"hex": 16, "bin": 2, "oct": 8}[radix.lastgroup or "hex"]
        digits = radix[radix.lastgroup or "hex"].strip("_")
        return str(int(digits, base)) if 0 < len(digits) < 200 else None
    match = _CRUDE.fullmatch(spelling)
    if match is None or not any(map(str.isdigit, match["digits"] + (match["decimals"] or ""))):
        return None
    digits = re.sub("_+", "_", match["digits"].strip("_")).lstrip("0_") or "0"
    decimals = re.sub("_+", "_", (match["decimals"] or "").strip("_"))
    exponent = (match["exponent"] or "").replace("_", "")
    return digits + (f".{decimals}" if decimals else "") + (f"e{exponent}" if exponent else "") + match["suffix"]
