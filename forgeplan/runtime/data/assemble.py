"""How do sequences become what the model sees?

B batch, S sequence; a row has S + 1 tokens, its labels are shifted by one.
"""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray

from forgeplan.runtime.data.hashing import I64
from forgeplan.runtime.data.microbatch import NOT_COUNTED, Microbatch


def microbatch(rows: I64, uncounted: NDArray[np.bool_], end_of_document: I64, *, pack: bool, sample: int) -> Microbatch:
    """A microbatch from rows of shape (B, S + 1).

    `uncounted` (B,) marks rows whose last label is not learnt. `end_of_document` (B,) is the id that closes documents
    in each row; it is read only with `pack`, where the label after it, the first token of another document, is not
    counted.
    """
    tokens = rows[:, :-1].copy()
    labels = rows[:, 1:].copy()
    labels[uncounted, -1] = NOT_COUNTED
    if not pack:
        return Microbatch(torch.from_numpy(tokens), torch.from_numpy(labels), sample=sample)
    ends = tokens == end_of_document[:, None]
    labels[ends] = NOT_COUNTED
    firsts = np.zeros_like(ends)
    firsts[:, 1:] = ends[:, :-1]
    steps = np.arange(tokens.shape[1], dtype=np.int64)
    positions = steps - np.maximum.accumulate(np.where(firsts, steps, 0), axis=1)
    documents = np.cumsum(firsts, axis=1, dtype=np.int64)
    return Microbatch(
        torch.from_numpy(tokens),
        torch.from_numpy(labels),
        torch.from_numpy(positions),
        torch.from_numpy(documents),
        sample,
    )
