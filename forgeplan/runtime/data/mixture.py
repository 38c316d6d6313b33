"""Which source does each sample come from, and the how-manieth of that source is it?

The weights are whole numbers w_s with sum W. One period of W draws takes source s exactly w_s times, and is repeated.
In it the j-th draw of s lies in the slots ⌊j·W/w_s⌋ … ⌈(j+1)·W/w_s⌉ − 1, and of the draws that may take a slot the
one that must be made soonest does. Such a schedule always exists (Baruah, Cohen, Plaxton and Varvel, 1996), and after
any number of draws each source was drawn exactly its share, rounded down or up.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from heapq import heapify, heappop, heappush
from math import gcd, lcm

import numpy as np
from attrs import frozen

from forgeplan.runtime.data.hashing import I64

LONGEST_PERIOD = 1_000_000
"""Weights whose exact period is longer are rounded to this many parts; no positive weight becomes zero."""


@frozen
class Mixture:
    """`names` are the sources that are drawn at all, `parts` their whole-number weights.

    `slots` says which of them takes each slot of a period, `ranks` how many slots before it the same source took.
    """

    names: tuple[str, ...]
    parts: tuple[int, ...]
    slots: I64
    ranks: I64

    @classmethod
    def of(cls, weights: Mapping[str, Fraction]) -> Mixture:
        """From weights ≥ 0, of which one at least is positive; their sum does not matter."""
        drawn = {name: Fraction(weights[name]) for name in sorted(weights) if weights[name] > 0}
        parts = _whole(list(drawn.values()))
        slots = _schedule(parts)
        ranks = np.empty_like(slots)
        for source, part in enumerate(parts):
            ranks[slots == source] = np.arange(part)
        return cls(tuple(drawn), tuple(parts), slots, ranks)

    @property
    def period(self) -> int:
        return len(self.slots)

    def draw(self, samples: I64) -> tuple[I64, I64]:
        """For each global sample index: the source (a place in `names`), and how many earlier samples were its own."""
        periods, slots = np.divmod(samples, self.period)
        sources = self.slots[slots]
        return sources, periods * np.asarray(self.parts, np.int64)[sources] + self.ranks[slots]

    def counts(self, num_samples: int) -> dict[str, int]:
        """How many of the first `num_samples` samples come from each source."""
        periods, rest = divmod(num_samples, self.period)
        tail = np.bincount(self.slots[:rest], minlength=len(self.names))
        return {name: periods * part + int(more) for name, part, more in zip(self.names, self.parts, tail, strict=True)}


def _whole(weights: list[Fraction]) -> list[int]:
    """The smallest whole numbers in the ratio of the weights, or the nearest with LONGEST_PERIOD as their sum."""
    scale = lcm(*(w.denominator for w in weights))
    parts = [int(w * scale) for w in weights]
    shared = gcd(*parts)
    parts = [p // shared for p in parts]
    total = sum(parts)
    if total <= LONGEST_PERIOD:
        return parts
    rounded = [max(1, p * LONGEST_PERIOD // total) for p in parts]
    rounded[rounded.index(max(rounded))] += LONGEST_PERIOD - sum(rounded)
    return _whole([Fraction(p) for p in rounded])


def _schedule(parts: list[int]) -> I64:
    """The source of each slot of one period; earliest deadline first."""
    period = sum(parts)
    if len(parts) == 1:
        return np.zeros(1, np.int64)
    waiting = [(0, source, 0) for source in range(len(parts))]
    heapify(waiting)
    ready: list[tuple[int, int, int]] = []
    slots = np.empty(period, np.int64)
    for slot in range(period):
        while waiting and waiting[0][0] <= slot:
            _, source, draw = heappop(waiting)
            heappush(ready, (-(-(draw + 1) * period // parts[source]), source, draw))
        _, source, draw = heappop(ready)
        slots[slot] = source
        if draw + 1 < parts[source]:
            heappush(waiting, ((draw + 1) * period // parts[source], source, draw + 1))
    return slots
