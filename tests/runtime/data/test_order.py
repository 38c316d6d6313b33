"""Is the order of an epoch a permutation that arithmetic alone gives?"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from forgeplan.runtime.data.hashing import key_of, mixed
from forgeplan.runtime.data.order import ROUNDS, in_epochs, permuted


def test_hash_gives_the_published_numbers_of_splitmix64():
    # First outputs of the reference implementation (prng.di.unimi.it/splitmix64.c) for the seed 1234567.
    published = [6457827717110365317, 3203168211198807973, 9817491932198370423, 4593380528125082431]
    counters = np.arange(1, 5, dtype=np.uint64)
    assert mixed(np.array([1234567], np.uint64), counters).tolist() == published


@pytest.mark.parametrize("num_samples", [*range(1, 70), 100, 255, 256, 257, 1000, 4095, 4096, 4097, 100_003])
def test_every_place_of_an_epoch_holds_another_sample(num_samples):
    order = permuted(np.arange(num_samples), num_samples, key_of("any", num_samples))
    assert np.array_equal(np.sort(order), np.arange(num_samples))


@given(st.integers(2, 2**40), st.integers(0, 2**63), st.data())
def test_a_huge_epoch_needs_no_memory_and_equals_the_rule_written_out(num_samples, key, data):
    place = data.draw(st.integers(0, num_samples - 1))
    got = permuted(np.array([place]), num_samples, np.array([key], np.uint64))
    assert got.tolist() == [written_out(place, num_samples, key)]


def written_out(place: int, num_samples: int, key: int) -> int:
    """The rule of order.py in whole numbers of Python."""
    bits = (num_samples - 1).bit_length()
    low_bits, high_bits = (bits + 1) // 2, bits // 2
    while True:
        high, low = divmod(place, 1 << low_bits)
        for number in range(0, ROUNDS, 2):
            low ^= splitmix(key, high + (number << 33)) % (1 << low_bits)
            high ^= splitmix(key, low + ((number + 1) << 33)) % (1 << high_bits)
        place = (high << low_bits) + low
        if place < num_samples:
            return place


def splitmix(key: int, counter: int) -> int:
    x = (key + counter * 0x9E3779B97F4A7C15) % 2**64
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) % 2**64
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) % 2**64
    return x ^ (x >> 31)


def test_each_epoch_has_an_order_of_its_own():
    order = in_epochs(np.arange(5 * 125), 125, key_of("order", 0, "web"), shuffle=True).reshape(5, 125)
    assert all(sorted(epoch) == list(range(125)) for epoch in order.tolist())
    assert len({tuple(epoch) for epoch in order.tolist()}) == 5


def test_without_shuffling_epochs_repeat_the_order_of_the_source():
    assert in_epochs(np.arange(5), 2, key_of("any"), shuffle=False).tolist() == [0, 1, 0, 1, 0]


def test_seeds_place_samples_evenly():
    # 10 samples, 4,000 keys: each sample stands first 400 times, with a deviation of 19; five of those are allowed.
    keys = mixed(key_of("even"), np.arange(4000, dtype=np.uint64))
    firsts = permuted(np.zeros(4000, np.int64), 10, keys)
    counts = np.bincount(firsts, minlength=10)
    assert counts.min() > 400 - 95
    assert counts.max() < 400 + 95


def test_neighbours_do_not_stay_neighbours():
    # In a random order of n samples, one pair on average is (k, k + 1) one after the other.
    order = permuted(np.arange(10_000), 10_000, key_of("neighbours"))
    assert (np.diff(order) == 1).sum() < 10


@settings(max_examples=50)
@given(st.integers(2, 500), st.integers(0, 2000), st.integers(1, 300))
def test_any_stretch_of_the_line_can_be_asked_for_alone(num_samples, first, count):
    key = key_of("stretch")
    whole = in_epochs(np.arange(first + count), num_samples, key, shuffle=True)
    assert np.array_equal(whole[first:], in_epochs(np.arange(first, first + count), num_samples, key, shuffle=True))


def test_the_order_of_existing_runs_never_changes():
    # What the rule gave when it was laid down: another answer here breaks the resume of every run.
    key = key_of("order", 0, "web")
    assert key.tolist() == [12128012048516270706]
    assert in_epochs(np.arange(10), 10, key, shuffle=True).tolist() == [6, 3, 4, 2, 0, 8, 7, 9, 5, 1]
