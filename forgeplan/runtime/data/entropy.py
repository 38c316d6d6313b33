"""How far does one get by knowing only how often each token occurs?"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from forgeplan.runtime.data.microbatch import NOT_COUNTED


def unigram_entropy(tokens: NDArray) -> float:
    """−Σ p·ln p over the ids of an integer array, in nats; NOT_COUNTED is left out, and no ids at all give 0."""
    counts = np.bincount(tokens[tokens != NOT_COUNTED].reshape(-1))
    return entropy_of_counts(counts)


def entropy_of_counts(counts: NDArray) -> float:
    """The same from the number of times each id occurs."""
    shares = counts[counts > 0] / max(1, counts.sum())
    return float(-(shares * np.log(shares)).sum())
