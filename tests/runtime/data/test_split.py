"""Do training and evaluations share nothing, and lose nothing?"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from forgeplan.diagnostics.refusal import Refusal
from forgeplan.runtime.data.hashing import key_of, mixed
from forgeplan.runtime.data.split import Part, WindowsOf, documents_of, split_source
from tests.runtime.data.plans import held_out

SHARES = st.lists(st.fractions("1/97", "1/4", max_denominator=97), max_size=3)


def parts_of(shares: list[Fraction]) -> list[Part]:
    train, evals = split_source("web", {f"e{i}": held_out("web", share) for i, share in enumerate(shares)})
    return [train, *evals.values()]


@given(SHARES, st.integers(0, 700))
def test_each_window_is_in_exactly_one_part(shares, num_windows):
    found = []
    for part in parts_of(shares):
        windows = WindowsOf(part, num_windows)
        mine = windows.windows(np.arange(windows.num))
        assert windows.contain(mine).all()
        found += mine.tolist()
    assert sorted(found) == list(range(num_windows))


@given(SHARES)
def test_parts_of_an_endless_source_begin_like_those_of_a_long_one(shares):
    for part in parts_of(shares):
        if part.of <= 5000:
            long = WindowsOf(part, 20 * part.of)
            numbers = np.arange(long.num)
            assert np.array_equal(long.windows(numbers), WindowsOf(part, None).windows(numbers))


def test_five_per_cent_are_one_window_of_every_twenty_at_changing_places():
    _, evaluated = parts_of([Fraction(1, 20)])
    windows = WindowsOf(evaluated, 20_000)
    held = windows.windows(np.arange(windows.num))
    assert (held // 20).tolist() == list(range(1000))
    assert set((held % 20).tolist()) == set(range(20))


def test_documents_go_by_their_content_and_in_about_the_right_number():
    train, evaluated = parts_of([Fraction(1, 20)])
    hashes = mixed(key_of("documents"), np.arange(40_000, dtype=np.uint64))
    in_train, in_eval = documents_of(train, hashes), documents_of(evaluated, hashes)
    assert (in_train ^ in_eval).all()
    # 5 % of 40,000 is 2,000, with a deviation of 44; five of those are allowed.
    assert abs(int(in_eval.sum()) - 2000) < 220


def test_evaluations_of_other_sources_and_without_a_split_hold_nothing_out():
    train, evals = split_source("web", {"a": held_out("books", Fraction(1, 2)), "b": held_out("web", None)})
    assert train.is_whole
    assert evals == {}


def test_splits_that_leave_nothing_are_refused_with_their_sum():
    with pytest.raises(Refusal) as refused:
        parts_of([Fraction(3, 5), Fraction(2, 5)])
    assert refused.value.code.id == "FP0618"
    assert refused.value.message == (
        "evaluations hold out all of source `web`, and nothing is left to train on: 60% (e0) + 40% (e1)"
    )
    assert refused.value.help == ("hold out less: eval.e0.split + eval.e1.split is well below 100%, such as 1%",)


def test_a_share_that_rounds_to_the_whole_is_said_as_a_percentage():
    with pytest.raises(Refusal) as refused:
        parts_of([1 - Fraction(1, 10**9)])
    assert refused.value.message.endswith("nothing is left to train on: 100% (e0)")
