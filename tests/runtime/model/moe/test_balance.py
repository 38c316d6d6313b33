"""Do the losses of uneven load have the published values, and gradients that do not depend on the split?"""

from __future__ import annotations

from fractions import Fraction

import pytest
import torch

from forgeplan.runtime.model.moe.balance import entropy, losses
from forgeplan.runtime.parallel.collectives import Group
from tests.runtime.model.moe.layers import choice_of, layer, moe, tokens

ONE = Fraction(1)
ROWS = [(2.0, 1.0, 0.0, 0.0), (2.0, 1.0, 0.0, 0.0), (0.0, 2.0, 1.0, 0.0), (0.0, 0.0, 1.0, 2.0)]
EVEN = [(1.0, 1.0, 0.0, 0.0), (0.0, 0.0, 1.0, 1.0)]


def test_balance_loss_is_one_at_perfect_balance() -> None:
    """C087."""
    spec = moe(balance=ONE, sequence_balance=ONE)
    found = losses(spec, choice_of(EVEN, 2), 1, Group())
    assert found.balance.item() == pytest.approx(1.0, abs=1e-12)
    assert found.sequence_balance.item() == pytest.approx(1.0, abs=1e-12)


def test_balance_loss_counts_assignments_not_tokens() -> None:
    """C087: dividing by tokens only would give 2.070960."""
    found = losses(moe(balance=ONE), choice_of(ROWS, 2), 2, Group())
    assert found.balance.item() == pytest.approx(1.035480, abs=1e-6)
    assert found.z.item() == found.sequence_balance.item() == 0


def test_sequence_balance_is_the_mean_over_sequences() -> None:
    """C092: 1.669622 and 1.141921; over the whole batch it would be 1.035480."""
    spec = moe(sequence_balance=ONE)
    each = [losses(spec, choice_of(rows, 2), 1, Group()).sequence_balance.item() for rows in (ROWS[:2], ROWS[2:])]
    assert each == pytest.approx([1.669622, 1.141921], abs=1e-6)
    found = losses(spec, choice_of(ROWS, 2), 2, Group())
    assert found.sequence_balance.item() == pytest.approx(1.405771, abs=1e-6)


def test_z_loss_is_the_mean_of_squared_log_sums() -> None:
    """ln(4)² for logits of zero, ln(4·e)² for ones; weighted once."""
    found = losses(moe(z=Fraction("0.5")), choice_of([(0.0,) * 4, (1.0,) * 4], 2), 1, Group())
    assert found.z.item() == pytest.approx(0.5 * (1.386294**2 + 2.386294**2) / 2, abs=1e-5)


@pytest.mark.parametrize("field", ["balance", "sequence_balance", "z"])
def test_a_loss_reaches_the_router_and_only_the_router(field: str) -> None:
    """C088, first half: no weight, no gradient; with it, one on the gate that falls along −gradient."""
    made, x = layer(moe(**{field: Fraction("0.01")})), tokens()
    before = getattr(made(x)[1], field)
    before.backward()
    assert made.router.weight.grad is not None
    assert made.router.weight.grad.norm() > 1e-5
    assert made.experts.w_up.grad is None
    with torch.no_grad():
        made.router.weight -= 0.1 / made.router.weight.grad.norm() * made.router.weight.grad
    assert getattr(made(x)[1], field) < before
    assert not getattr(layer(moe())(x)[1], field).requires_grad


@pytest.mark.parametrize("field", ["balance", "sequence_balance", "z"])
@pytest.mark.parametrize("num_microbatches", [2, 4])
def test_microbatches_of_equal_content_give_the_gradient_of_one(field: str, num_microbatches: int) -> None:
    """C088, second half: a loss is averaged over the microbatches of a step, not summed."""
    spec, x = moe(**{field: Fraction("0.01")}), tokens()
    made = layer(spec)
    getattr(made(x)[1], field).backward()
    wanted = made.router.weight.grad
    accumulated = layer(spec)
    for _ in range(num_microbatches):
        (getattr(accumulated(x)[1], field) / num_microbatches).backward()
    assert wanted is not None
    assert torch.allclose(accumulated.router.weight.grad, wanted, rtol=1e-12, atol=0)


def test_balance_loss_pushes_down_the_experts_with_more_than_their_share() -> None:
    """dL/dPₑ = E·fₑ / T, through the softmax: p·(f − Σ p·f)·E/T for every token."""
    choice = choice_of(ROWS, 2)
    losses(moe(balance=ONE), choice, 2, Group()).balance.backward()
    f = torch.tensor([2.0, 3.0, 2.0, 1.0]).double() / 8
    p = torch.tensor(ROWS).double().softmax(-1)
    wanted = p * (f - (p * f).sum(-1, keepdim=True)) * 4 / 4
    assert torch.allclose(choice.logits_TE.grad, wanted, rtol=1e-12, atol=1e-15)


def test_entropy_is_ln_of_the_experts_without_a_preference() -> None:
    assert entropy(choice_of([(3.0,) * 4] * 5, 2)).item() == pytest.approx(5 * 1.386294, abs=1e-5)
    assert entropy(choice_of([(800.0, 0.0, 0.0, 0.0)], 2)).item() == 0
