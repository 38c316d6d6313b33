"""Which sample stands at which place of an epoch? A permutation by arithmetic: no list, no state, any place at once.

The places 0 … n−1 are written in b = ⌈log2 n⌉ bits, cut into two halves, and each half is changed in turn by a hash
of the other (a Feistel network: each round can be undone, whatever the hash). This permutes 0 … 2^b − 1; a result
that is not below n is sent through again until it is (Black and Rogaway, 2002, "cycle walking"), fewer than two times
on average.
"""

from __future__ import annotations

import numpy as np

from forgeplan.runtime.data.hashing import I64, U64, mixed

ROUNDS = 6


def permuted(places: I64, num_samples: int, key: U64) -> I64:
    """The sample at each place, for places in 0 … num_samples − 1. `key` has one element, or one a place."""
    if num_samples == 1:
        return np.zeros_like(places)
    bits = (num_samples - 1).bit_length()
    values = places.astype(np.uint64)
    keys = np.broadcast_to(key, values.shape)
    values = _feistel(values, bits, keys)
    outside = np.flatnonzero(values >= num_samples)
    while outside.size:
        values[outside] = _feistel(values[outside], bits, keys[outside])
        outside = outside[values[outside] >= num_samples]
    return values.astype(np.int64)


def _feistel(values: U64, bits: int, keys: U64) -> U64:
    low_bits = np.uint64((bits + 1) // 2)
    low_mask = np.uint64((1 << int(low_bits)) - 1)
    high_mask = np.uint64((1 << bits // 2) - 1)
    low, high = values & low_mask, values >> low_bits
    for number in range(0, ROUNDS, 2):
        low ^= mixed(keys, high + np.uint64(number << 33)) & low_mask
        high ^= mixed(keys, low + np.uint64((number + 1) << 33)) & high_mask
    return (high << low_bits) | low


def epoch_keys(key: U64, epochs: I64) -> U64:
    """The key of the permutation of each epoch."""
    return mixed(key, epochs.astype(np.uint64))


def in_epochs(draws: I64, num_samples: int, key: U64, shuffle: bool) -> I64:
    """The sample of a source at its `draws`-th draws: each sample once an epoch, each epoch in an order of its own."""
    epochs, places = np.divmod(draws, num_samples)
    return permuted(places, num_samples, epoch_keys(key, epochs)) if shuffle else places
