"""How are sequences of several sources read into one block, and what is looked at on the way?"""

from __future__ import annotations

import numpy as np
from attrs import frozen
from numpy.typing import NDArray

from forgeplan.diagnostics.data_codes import TOKEN_RANGE
from forgeplan.diagnostics.refusal import Refusal
from forgeplan.runtime.data.hashing import I64
from forgeplan.runtime.data.samples import Samples


@frozen
class Rows:
    """Sequences as (B, S + 1); for each, whether its last label is foreign, and its end-of-document id or −1."""

    tokens: I64
    foreign: NDArray[np.bool_]
    end_of_document: I64


class Reader:
    """Reads from `parts`, each with its end-of-document id; checks every id against the vocabulary."""

    def __init__(self, parts: list[tuple[Samples, int | None]], length: int, vocab: int) -> None:
        self._parts = parts
        self._width = length + 1
        self._vocab = vocab

    def read(self, of: I64, numbers: I64) -> Rows:
        """Sequence numbers[i] of part of[i], for all i. Raises Refusal FP1017 for an id outside the vocabulary."""
        tokens = np.empty((len(numbers), self._width), np.int64)
        foreign = np.zeros(len(numbers), np.bool_)
        closing = np.full(len(numbers), -1, np.int64)
        for part, (samples, end_of_document) in enumerate(self._parts):
            rows = np.flatnonzero(of == part) if len(self._parts) > 1 else np.arange(len(numbers))
            if not rows.size:
                continue
            block = tokens if rows.size == len(tokens) else np.empty((rows.size, self._width), np.int64)
            samples.read(numbers[rows], block)
            self._check(block, samples, numbers[rows])
            if block is not tokens:
                tokens[rows] = block
            foreign[rows] = samples.foreign_labels(numbers[rows])
            closing[rows] = -1 if end_of_document is None else end_of_document
        return Rows(tokens, foreign, closing)

    def _check(self, block: I64, samples: Samples, numbers: I64) -> None:
        # As unsigned, a negative id is a huge one: one look instead of two.
        ids = block.view(np.uint64)
        if int(ids.max()) < self._vocab:
            return
        row, offset = (int(at[0]) for at in np.nonzero(ids >= self._vocab))
        raise Refusal(
            TOKEN_RANGE,
            f"{samples.place(int(numbers[row]), offset)}: id {int(block[row, offset]):,}, "
            f"and model.vocab is {self._vocab:,}",
            "the file was made with another tokenizer, or its dtype is another; otherwise raise model.vocab",
        )
