"""Does the comparison find every kind of difference, name it, and measure it against the right scale?"""

from __future__ import annotations

from collections.abc import Callable
from math import inf, nan

import pytest
import torch
from attrs import evolve

from forgeplan.runtime.selftest.compare import culprit, deviations, worst
from forgeplan.runtime.selftest.reference import Trained


def trained() -> Trained:
    """Two tensors; one is a hundred times as large as the other and moves as far."""
    initial = {"large": torch.full((4,), 100.0).double(), "small": torch.ones(4).double()}
    return Trained(
        losses=[4.0, 2.0],
        norms=[1.0, 1.0],
        rates=[0.5, 1.0],
        gradients={name: torch.full((4,), 0.5).double() for name in initial},
        initial=initial,
        weights={name: tensor - 0.1 for name, tensor in initial.items()},
    )


def put(tensors: dict[str, torch.Tensor], name: str, change: float) -> dict[str, torch.Tensor]:
    changed = tensors[name].clone()
    changed[0] += change
    return tensors | {name: changed}


CHANGES: dict[str, tuple[Callable[[Trained], Trained], float]] = {
    "loss of step 2": (lambda t: evolve(t, losses=[4.0, 2.0 + 2e-8]), 1e-8),
    "gradient norm of step 1": (lambda t: evolve(t, norms=[1.0 - 1e-8, 1.0]), 1e-8),
    "learning rate of step 1": (lambda t: evolve(t, rates=[0.5 + 1e-8, 1.0]), 2e-8),
    "gradient of small": (lambda t: evolve(t, gradients=put(t.gradients, "small", 1e-8)), 1e-8),
    "large at the end": (lambda t: evolve(t, weights=put(t.weights, "large", 2e-9)), 1e-8),
    "initial large": (lambda t: evolve(t, initial=put(t.initial, "large", 2e-12)), 1e-14),
}


@pytest.mark.parametrize("what", CHANGES)
def test_a_difference_is_named_and_measured_against_its_own_size(what: str) -> None:
    """Weights against how far they moved (0.1 each, so 0.2 in all), not against how large they are."""
    change, size = CHANGES[what]
    found = worst(deviations(change(trained()), trained(), "fp64"))
    assert found.what == what
    assert found.value == pytest.approx(size, rel=1e-2)
    assert not found.is_same


def test_a_tensor_that_begins_or_is_pushed_otherwise_is_named_before_what_follows_from_it() -> None:
    later = evolve(trained(), losses=[4.0, 3.0], weights=put(trained().weights, "large", 1e6))
    assert culprit(deviations(later, trained(), "fp64")).what == "large at the end"
    pushed = evolve(later, gradients=put(put(later.gradients, "small", 0.1), "large", 0.2))
    assert culprit(deviations(pushed, trained(), "fp64")).what == "gradient of large"
    begun = evolve(pushed, initial=put(pushed.initial, "small", 1e-9))
    assert culprit(deviations(begun, trained(), "fp64")).what == "initial small"


def test_what_is_equal_has_no_deviation_and_what_is_nearly_equal_is_the_same() -> None:
    assert {d.value for d in deviations(trained(), trained(), "fp64")} == {0.0}
    nearly = evolve(trained(), losses=[4.0, 2.0 + 1e-9])
    found = worst(deviations(nearly, trained(), "fp64"))
    assert (found.what, found.is_same) == ("loss of step 2", True)
    assert found.excess == pytest.approx(0.5, rel=1e-2)


def test_fp32_allows_more_and_does_not_compare_weights() -> None:
    other = evolve(trained(), weights=put(trained().weights, "small", 1.0), losses=[4.0, 2.0 + 1e-5])
    found = deviations(other, trained(), "fp32")
    assert not any("at the end" in deviation.what for deviation in found)
    assert worst(found).value == pytest.approx(5e-6, rel=1e-2)
    assert all(deviation.is_same for deviation in found)


BROKEN: dict[str, Callable[[Trained], Trained]] = {
    "loss of step 1": lambda t: evolve(t, losses=[nan, 2.0]),
    "gradient norm: 1 steps instead of 2": lambda t: evolve(t, norms=[1.0]),
    "gradient of small, which only one of the two has": lambda t: evolve(t, gradients={"large": t.gradients["large"]}),
    "other at the end, which only one of the two has": lambda t: evolve(
        t, weights=t.weights | {"other": torch.ones(1)}
    ),
    "large at the end, in another shape": lambda t: evolve(t, weights=t.weights | {"large": torch.ones(4, 1)}),
    "gradient of large": lambda t: evolve(t, gradients=put(t.gradients, "large", nan)),
}


@pytest.mark.parametrize("what", BROKEN)
def test_what_cannot_be_compared_is_never_the_same(what: str) -> None:
    found = worst(deviations(BROKEN[what](trained()), trained(), "fp64"))
    assert (found.what, found.excess, found.is_same) == (what, inf, False)


def test_of_a_gradient_that_is_zero_only_zero_is_the_same() -> None:
    none = evolve(trained(), gradients=trained().gradients | {"small": torch.zeros(4)})
    assert all(deviation.is_same for deviation in deviations(none, none, "fp64"))
    found = worst(deviations(evolve(none, gradients=put(none.gradients, "small", 1e-30)), none, "fp64"))
    assert (found.what, found.excess) == ("gradient of small", inf)
