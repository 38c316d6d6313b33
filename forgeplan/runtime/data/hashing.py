"""How does a number become a random-looking one, the same on every machine?

The finaliser of SplitMix64 (Steele, Lea and Flood, 2014) on 64-bit integers, element by element. Nothing here has a
state: what depends on chance is a function of a key and a counter.
"""

from __future__ import annotations

from hashlib import blake2b

import numpy as np
from numpy.typing import NDArray

U64 = NDArray[np.uint64]
I64 = NDArray[np.int64]

_STEP = np.uint64(0x9E3779B97F4A7C15)
_FIRST = np.uint64(0xBF58476D1CE4E5B9)
_SECOND = np.uint64(0x94D049BB133111EB)
_30, _27, _31 = np.uint64(30), np.uint64(27), np.uint64(31)


def mixed(key: U64, counter: U64) -> U64:
    """The `counter`-th number of the sequence that `key` starts; the two are broadcast against one another."""
    x = counter * _STEP + key
    x ^= x >> _30
    x *= _FIRST
    x ^= x >> _27
    x *= _SECOND
    x ^= x >> _31
    return x


def key_of(*parts: int | str) -> U64:
    """A key, as an array of one element, from numbers and names."""
    text = "\x1f".join(map(str, parts)).encode()
    return np.frombuffer(blake2b(text, digest_size=8).digest(), "<u8").astype(np.uint64)
