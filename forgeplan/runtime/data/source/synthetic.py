"""Which data has a known entropy? A counter with noise, where every token is a function of the seed and its place."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from forgeplan.runtime.data.hashing import I64, U64, key_of, mixed
from forgeplan.runtime.data.samples import Samples, Setting, Source
from forgeplan.runtime.data.split import Part
from forgeplan.runtime.data.windows import WindowSamples
from forgeplan.runtime.registry import register
from forgeplan.spec.source.built_in import Synthetic


class SyntheticSource(Source):
    """Without end, and so without epochs: sequence after sequence, each a chain of its own that starts anywhere."""

    shuffle = False

    def __init__(self, spec: Synthetic, setting: Setting) -> None:
        self.end_of_document = spec.states
        self._spec = spec
        self._whole = SyntheticSamples(spec, setting)

    def part(self, part: Part) -> Samples:
        return self._whole if part.is_whole else WindowSamples(self._whole, part, share_edges=False)

    def facts(self) -> Mapping[str, str]:
        return {"process": f"{self._spec.states} states, noise {self._spec.noise}, documents {self._spec.document}"}

    def describe(self) -> str:
        documents = f", documents of {self._spec.document} tokens on average" if self._spec.document else ""
        return f"endless, a counter over {self._spec.states} states with {float(self._spec.noise):.4g} noise{documents}"


class SyntheticSamples(Samples):
    """Sequences of length + 1 tokens, made when they are read."""

    num_samples = None

    def __init__(self, spec: Synthetic, setting: Setting) -> None:
        self._states = spec.states
        self._width = setting.length + 1
        self._name = setting.name
        keys = [key_of("synthetic", setting.seed, setting.name, what) for what in ("value", "noise", "document")]
        self._value_key, self._noise_key, self._document_key = keys
        self._noise = _threshold(spec.noise)
        # A document of mean length n is one token at least, then ends after each with probability 1/(n − 1).
        self._end = None if spec.document is None else _threshold(Fraction(1, spec.document - 1))

    def read(self, numbers: I64, out: I64) -> None:
        firsts: U64 = numbers.astype(np.uint64) * np.uint64(self._width)
        places = np.add.outer(firsts, np.arange(self._width, dtype=np.uint64))
        restarts = _chance(self._noise_key, places, self._noise)
        restarts[:, 0] = True
        ends = None
        if self._end is not None:
            ends = _every_other(_chance(self._document_key, places, self._end))
            restarts[:, 1:] |= ends[:, :-1]
        steps = np.arange(self._width, dtype=np.int64)
        last = np.maximum.accumulate(np.where(restarts, steps, 0), axis=1)
        drawn = (mixed(self._value_key, places) % np.uint64(self._states)).astype(np.int64)
        out[:] = (np.take_along_axis(drawn, last, axis=1) + steps - last) % self._states
        if ends is not None:
            out[ends] = self._states

    def place(self, number: int, offset: int) -> str:
        return f"source `{self._name}`, token {number * self._width + offset:,}"


def _threshold(probability: Fraction) -> np.uint64:
    return np.uint64(int(probability * 2**63))


def _chance(key: U64, places: U64, threshold: np.uint64) -> NDArray[np.bool_]:
    return (mixed(key, places) >> np.uint64(1)) < threshold


def _every_other(candidates: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Of each run of candidates the first, third, fifth …, and never the first of a sequence: no document is empty."""
    candidates[:, 0] = False
    steps = np.arange(candidates.shape[1])
    before = np.maximum.accumulate(np.where(candidates, -1, steps), axis=1)
    return candidates & ((steps - before) % 2 == 1)


@register.source("synthetic", spec=Synthetic)
def open_synthetic(spec: Synthetic, setting: Setting) -> SyntheticSource:
    return SyntheticSource(spec, setting)
