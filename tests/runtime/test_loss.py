"""Is the loss summed over exactly the counted labels, in enough precision?"""

from __future__ import annotations

from fractions import Fraction
from math import log

import pytest
import torch

from forgeplan.runtime.data.microbatch import NOT_COUNTED
from forgeplan.runtime.loss import cross_entropy
from forgeplan.spec.loss.cross_entropy import CrossEntropy

PLAIN = CrossEntropy(z=Fraction(0), mtp=Fraction(0))


@pytest.mark.parametrize(("vocab", "expected"), [(1680, 7.426549), (256, 5.545177)])
def test_logits_in_bf16_do_not_quantise_the_loss(vocab: int, expected: float) -> None:
    """ln V of zero logits; a loss in bf16 would be 7.4375 and 5.53125."""
    logits = torch.zeros(1, 3, vocab, dtype=torch.bfloat16)
    sums = cross_entropy(PLAIN, logits, torch.tensor([[1, 2, 3]]))
    assert (sums.loss / sums.counted).item() == pytest.approx(expected, abs=1e-6)


def test_fp64_stays_fp64() -> None:
    sums = cross_entropy(PLAIN, torch.randn(1, 2, 5, dtype=torch.float64), torch.tensor([[0, 1]]))
    assert sums.loss.dtype == torch.float64


@pytest.mark.parametrize("logit_of_masked", [0.0, 100.0])
def test_z_loss_ignores_masked_positions_and_stands_apart(logit_of_masked: float) -> None:
    """C048: 8 positions, 4 masked, vocabulary of 10, z = 1e-4: 1e-4·(ln 10)² = 5.30190e-4."""
    logits = torch.zeros(1, 8, 10)
    logits[:, 4:] = logit_of_masked
    labels = torch.tensor([[1, 2, 3, 4, *[NOT_COUNTED] * 4]])
    sums = cross_entropy(CrossEntropy(z=Fraction("1e-4"), mtp=Fraction(0)), logits, labels)
    assert sums.counted.item() == 4
    assert (sums.z / 4).item() == pytest.approx(5.30190e-4, rel=1e-5)
    assert (sums.loss / 4).item() == pytest.approx(log(10), rel=1e-6)


def test_nothing_counted_is_a_differentiable_zero() -> None:
    logits = torch.randn(1, 4, 10, requires_grad=True)
    sums = cross_entropy(CrossEntropy(z=Fraction(1), mtp=Fraction(0)), logits, torch.full((1, 4), NOT_COUNTED))
    (sums.loss + sums.z).backward()
    assert (sums.loss.item(), sums.z.item(), sums.counted.item()) == (0, 0, 0)
    assert logits.grad is not None
    assert not logits.grad.any()
