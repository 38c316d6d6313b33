"""Does each source get its share, after any number of samples?"""

from __future__ import annotations

from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from forgeplan.runtime.data.hashing import key_of
from forgeplan.runtime.data.mixture import LONGEST_PERIOD, Mixture
from forgeplan.runtime.data.order import in_epochs

WEIGHTS = st.lists(st.integers(0, 60), min_size=1, max_size=6).filter(any)


@settings(max_examples=60)
@given(WEIGHTS)
def test_after_any_number_of_samples_each_source_is_within_one_of_its_share(weights):
    mixture = Mixture.of({f"s{i}": Fraction(w) for i, w in enumerate(weights)})
    sources, draws = mixture.draw(np.arange(2 * mixture.period + 7))
    seen: Counter[str] = Counter()
    for sample, (source, draw) in enumerate(zip(sources.tolist(), draws.tolist(), strict=True), 1):
        name = mixture.names[source]
        assert draw == seen[name]
        seen[name] += 1
        for i, weight in enumerate(weights):
            assert abs(seen[f"s{i}"] - Fraction(weight * sample, sum(weights))) < 1
        assert mixture.counts(sample) == {name: seen[name] for name in mixture.names}


@given(WEIGHTS, st.integers(0, 10**15))
def test_any_sample_can_be_asked_for_alone(weights, sample):
    mixture = Mixture.of({f"s{i}": Fraction(w) for i, w in enumerate(weights)})
    (source,), (draw,) = mixture.draw(np.array([sample]))
    assert draw == mixture.counts(sample)[mixture.names[source]]


def test_a_source_of_weight_zero_is_never_drawn():
    mixture = Mixture.of({"a": Fraction(1), "never": Fraction(0), "b": Fraction(2)})
    assert mixture.names == ("a", "b")
    assert mixture.counts(3000) == {"a": 1000, "b": 2000}


def test_the_order_in_which_sources_are_written_does_not_matter():
    one = Mixture.of({"a": Fraction(2), "b": Fraction(3), "c": Fraction(3)})
    other = Mixture.of({"c": Fraction(3), "b": Fraction(3), "a": Fraction(2)})
    assert one.names == other.names
    assert np.array_equal(one.slots, other.slots)


def test_extreme_weights_use_up_a_source_epoch_by_epoch():
    """Case C065: two sources of 100 samples, weights 0.001 and 0.999, 1000 draws."""
    mixture = Mixture.of({"rare": Fraction(1, 1000), "often": Fraction(999, 1000)})
    sources, draws = mixture.draw(np.arange(1000))
    often = draws[sources == mixture.names.index("often")]
    assert (sources == mixture.names.index("rare")).sum() == 1
    samples = in_epochs(often, 100, key_of("often"), shuffle=True)
    for epoch in range(9):
        assert sorted(samples[100 * epoch : 100 * epoch + 100].tolist()) == list(range(100))
    assert len(set(samples[900:].tolist())) == 99


@pytest.mark.parametrize(
    ("sizes", "weights", "num_draws"),
    [({"a": 5, "b": 5}, {"a": 60, "b": 40}, 8), ({"a": 7, "b": 3, "c": 2}, {"a": 1, "b": 1, "c": 1}, 12)],
)
def test_no_sample_repeats_before_its_source_is_used_up(sizes, weights, num_draws):
    """Case C069."""
    mixture = Mixture.of({name: Fraction(w) for name, w in weights.items()})
    sources, draws = mixture.draw(np.arange(num_draws))
    for place, name in enumerate(mixture.names):
        samples = in_epochs(draws[sources == place], sizes[name], key_of(name), shuffle=True)
        for start in range(0, len(samples), sizes[name]):
            epoch = samples[start : start + sizes[name]].tolist()
            assert len(set(epoch)) == len(epoch)
    share = Fraction(weights["a"], sum(weights.values())) * num_draws
    assert abs((sources == 0).sum() - share) < 1


def test_weights_of_an_endless_ratio_are_rounded_but_none_vanishes():
    mixture = Mixture.of({"most": Fraction(1), "hardly": Fraction(1, 10**12)})
    assert mixture.period == LONGEST_PERIOD
    assert mixture.counts(LONGEST_PERIOD) == {"hardly": 1, "most": LONGEST_PERIOD - 1}
