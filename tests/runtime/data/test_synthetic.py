"""Has the synthetic process the entropy that its description promises?"""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest

from forgeplan.runtime.data.entropy import unigram_entropy
from forgeplan.runtime.data.samples import Setting
from forgeplan.runtime.data.source.synthetic import SyntheticSource
from forgeplan.runtime.data.split import WHOLE
from forgeplan.spec.source.built_in import Synthetic


def rows_of(spec: Synthetic, num_samples: int, length: int, tmp_path, seed: int = 0, first: int = 0) -> np.ndarray:
    setting = Setting("s", tmp_path, length, seed, None, (tmp_path,))
    out = np.empty((num_samples, length + 1), np.int64)
    SyntheticSource(spec, setting).part(WHOLE).read(np.arange(first, first + num_samples), out)
    return out


def test_without_noise_it_is_a_counter(tmp_path):
    """Case C046, first half: the next token is (t + 1) mod 16."""
    rows = rows_of(Synthetic(16, Fraction(0), None), 200, 31, tmp_path)
    assert np.array_equal(rows[:, 1:], (rows[:, :-1] + 1) % 16)
    assert set(rows[:, 0].tolist()) == set(range(16))


def test_noise_of_100_per_cent_is_uniform_and_independent(tmp_path):
    """Case C046, second half: fresh uniform tokens over 16; no model gets below ln 16."""
    rows = rows_of(Synthetic(16, Fraction(1), None), 1000, 256, tmp_path)
    pairs = np.bincount(rows[:, :-1].flatten() * 16 + rows[:, 1:].flatten(), minlength=256)
    # 256,000 pairs over 256 cells; chi² with 255 degrees of freedom is below 350 in all but 1 of 10,000 draws.
    assert ((pairs - 1000) ** 2 / 1000).sum() < 350
    assert len({tuple(row) for row in rows.tolist()}) == 1000


@pytest.mark.parametrize("noise", [Fraction(1, 10), Fraction(1, 2)])
def test_the_entropy_of_a_token_given_the_last_is_the_one_in_the_documentation(tmp_path, noise):
    states = 8
    rows = rows_of(Synthetic(states, noise, None), 2000, 256, tmp_path)
    steps = (rows[:, 1:] - rows[:, :-1]) % states
    n, k = float(noise), states
    documented = -(1 - n + n / k) * math.log(1 - n + n / k) - (k - 1) * (n / k) * math.log(n / k)
    # 512,000 draws: the estimate deviates by less than 0.002.
    assert unigram_entropy(steps) == pytest.approx(documented, abs=0.005)


def test_documents_have_the_mean_length_and_none_is_empty(tmp_path):
    states, mean = 8, 20
    rows = rows_of(Synthetic(states, Fraction(0), mean), 500, 2000, tmp_path)
    lengths = []
    for row in rows.tolist():
        ends = [i for i, token in enumerate(row) if token == states]
        lengths += [after - before for before, after in pairwise(ends)]
    assert min(lengths) == 2
    # 50,000 documents with a deviation of 19 tokens each; windows of 2,000 lose a few of the longest.
    assert np.mean(lengths) == pytest.approx(mean, rel=0.02)
    content = np.where(rows == states, -1, rows)
    follows = (content[:, :-1] >= 0) & (content[:, 1:] >= 0)
    assert np.array_equal(content[:, 1:][follows], (content[:, :-1][follows] + 1) % states)


def test_a_sequence_is_a_function_of_seed_and_number(tmp_path):
    spec = Synthetic(16, Fraction(1, 2), 10)
    whole = rows_of(spec, 10, 50, tmp_path)
    assert np.array_equal(rows_of(spec, 3, 50, tmp_path, first=7), whole[7:])
    assert not np.array_equal(rows_of(spec, 10, 50, tmp_path, seed=1), whole)
