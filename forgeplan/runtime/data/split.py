"""Which share of a source does an evaluation hold out, and which is left to train on?

A source is cut into parts once, from its evaluations alone: neither seed nor ranks matter. Documents go to a part by
the hash of their content, so that copies of a document are on one side. Windows of token files go by their number: of
every `of` windows in a row each part has its exact count, at places that a hash of the block's number moves.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from math import gcd, lcm

import numpy as np
from attrs import frozen
from numpy.typing import NDArray

from forgeplan.diagnostics.data_codes import SPLIT
from forgeplan.diagnostics.refusal import Refusal
from forgeplan.runtime.data.hashing import I64, U64, key_of, mixed
from forgeplan.spec.plan import Eval

FINEST = 1_000_000
"""Shares are rounded to this many parts."""


@frozen
class Part:
    """The shares low/of … high/of of a source."""

    low: int = 0
    high: int = 1
    of: int = 1

    @property
    def is_whole(self) -> bool:
        return self.high - self.low == self.of


WHOLE = Part()


def split_source(source: str, evals: Mapping[str, Eval]) -> tuple[Part, dict[str, Part]]:
    """What training keeps of a source, and what each evaluation that splits it takes.

    Raises Refusal FP0618 if nothing is kept.
    """
    shares = {name: evals[name].split for name in sorted(evals) if evals[name].source == source}
    rounded = {
        name: max(Fraction(1, FINEST), Fraction(round(share * FINEST), FINEST))
        for name, share in shares.items()
        if share
    }
    total = sum(rounded.values(), Fraction(0))
    if total >= 1:
        taken = " + ".join(f"{100 * float(share):.4g}% ({name})" for name, share in rounded.items())
        message = f"evaluations hold out all of source `{source}`, and nothing is left to train on: {taken}"
        fields = " + ".join(f"eval.{name}.split" for name in rounded)
        raise Refusal(SPLIT, message, f"hold out less: {fields} is well below 100%, such as 1%")
    of = lcm(*(share.denominator for share in rounded.values())) if rounded else 1
    parts, low = {}, 0
    for name, share in rounded.items():
        high = low + int(share * of)
        parts[name] = Part(low, high, of)
        low = high
    return Part(low, of, of), parts


def documents_of(part: Part, hashes: U64) -> NDArray[np.bool_]:
    """Which documents, given the hashes of their contents, belong to a part."""
    place = ((hashes >> np.uint64(32)) * np.uint64(part.of)) >> np.uint64(32)
    return (place >= part.low) & (place < part.high)


class WindowsOf:
    """The windows 0 … num_windows − 1 (without end if None) that belong to a part, by number in it."""

    def __init__(self, part: Part, num_windows: int | None) -> None:
        self._part = part
        self._scatter = _coprime_near_golden_ratio(part.of)
        self._gather = pow(self._scatter, -1, part.of) if part.of > 1 else 0
        self._in_block = part.high - part.low
        self._blocks = None if num_windows is None else num_windows // part.of
        self._tail = np.empty(0, np.int64)
        self.num: int | None = None
        """How many there are."""
        if num_windows is not None and self._blocks is not None:
            rest = np.arange(self._blocks * part.of, num_windows, dtype=np.int64)
            self._tail = rest[self.contain(rest)]
            self.num = self._blocks * self._in_block + len(self._tail)

    def windows(self, numbers: I64) -> I64:
        """The window at each number of the part."""
        if self._part.is_whole:
            return numbers
        blocks, slots = np.divmod(numbers, self._in_block)
        places = (slots + self._part.low - self._offsets(blocks)) % self._part.of
        windows = blocks * self._part.of + places * self._gather % self._part.of
        if self._blocks is not None:
            late = blocks >= self._blocks
            windows[late] = self._tail[numbers[late] - self._blocks * self._in_block]
        return windows

    def contain(self, windows: I64) -> NDArray[np.bool_]:
        """Whether each window belongs to the part."""
        blocks, places = np.divmod(windows, self._part.of)
        slots = (places * self._scatter + self._offsets(blocks)) % self._part.of
        return (slots >= self._part.low) & (slots < self._part.high)

    def _offsets(self, blocks: I64) -> I64:
        return (mixed(_SPLIT_KEY, blocks.astype(np.uint64)) % np.uint64(self._part.of)).astype(np.int64)


_SPLIT_KEY = key_of("held out")


def _coprime_near_golden_ratio(number: int) -> int:
    """A multiplier that spreads neighbours evenly over 0 … number − 1."""
    guess = max(1, round(number * 0.6180339887498949))
    return next(g for g in range(guess, guess + number + 1) if gcd(g, number) == 1)
