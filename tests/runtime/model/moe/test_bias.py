"""Does the bias of a sigmoid router spread tokens evenly, step by step, as planned?"""

from __future__ import annotations

from math import cos, pi

import attrs
import pytest
import torch
from torch import Tensor, nn

from forgeplan.runtime.model.moe.bias import balance, rate_at, rate_of, updated_bias
from tests.runtime.model.moe.layers import layer, moe, sigmoid, tokens
from tests.runtime.tiny import decoder, execution_plan


def test_an_update_moves_by_the_rate_towards_the_mean_and_stays_centred() -> None:
    """Mean of 6, 2, 4, 4 is 4: −.01, +.01, 0, 0; of 9, 1, 1, 1 it is 3: −.01, then three times +.01, less .005."""
    bias = torch.tensor([0.5, -0.5, 0.25, -0.25]).double()
    assert updated_bias(bias, torch.tensor([6, 2, 4, 4]), 0.01).tolist() == pytest.approx([0.49, -0.49, 0.25, -0.25])
    moved = updated_bias(torch.zeros(4).double(), torch.tensor([9, 1, 1, 1]), 0.01)
    assert moved.tolist() == pytest.approx([-0.015, 0.005, 0.005, 0.005])


def test_an_expert_with_exactly_the_mean_stays() -> None:
    """3 experts with 10, 5, 0 of 15; in fp32 10/3 and the like would decide by round-off."""
    counts = torch.tensor([10, 5, 0])
    assert updated_bias(torch.zeros(3), counts, 0.25).tolist() == [-0.25, 0.0, 0.25]


def variation(counts_E: Tensor) -> float:
    return (counts_E.double().std(correction=0) / counts_E.double().mean()).item()


def test_a_skewed_router_is_balanced_within_300_updates() -> None:
    """Coefficient of variation of the load from ≥ 1.0 to ≤ 0.1 at rate 0.01."""
    made = layer(moe(experts=8, top_k=2, router=sigmoid(rate="0.01")), dim=32)
    with torch.no_grad():
        # One dim of every token speaks for the first experts, much louder than what tells tokens apart.
        made.router.weight[:, 0] = torch.linspace(1.5, -1.5, 8).double()
        made.router.weight[:, 1:] *= 0.5
    block = nn.Module()
    block.moe = made
    model = nn.Module()
    model.layers = nn.ModuleDict({"0": block})
    loads = []
    for update in range(301):
        x = tokens(batch=16, length=128, dim=32, seed=update)
        x[..., 0] = 1
        with torch.no_grad():
            counts_E = made(x)[1].counts_E
        loads.append(variation(counts_E))
        balance(model, {"layers.0": counts_E}, 0.01)
    assert loads[0] >= 1.0
    assert max(loads[291:]) <= 0.1


def test_a_router_without_a_bias_is_left_alone() -> None:
    block = nn.Module()
    block.moe = layer(moe())
    before = block.moe.router.weight.clone()
    model = nn.Module()
    model.layers = nn.ModuleDict({"0": block})
    balance(model, {"layers.0": torch.tensor([9, 1, 1, 1])}, 0.01)
    assert torch.equal(block.moe.router.weight, before)
    assert not list(model.buffers())


def test_rates_over_a_run() -> None:
    """Cosine: the whole at the first update, half in the middle, nothing at the last. Warm-up: k/W, then the whole."""
    rates = {word: sigmoid(rate="0.2", rate_schedule=word) for word in ("constant", "cosine", "warmup")}
    assert [rate_at(rates["constant"], k, None, 4) for k in (1, 50, 101)] == [0.2] * 3
    assert [rate_at(rates["cosine"], k, 101, 4) for k in (1, 51, 101)] == pytest.approx([0.2, 0.1, 0.0])
    assert rate_at(rates["cosine"], 26, 101, 4) == pytest.approx(0.1 * (1 + cos(pi / 4)))
    assert [rate_at(rates["warmup"], k, 101, 4) for k in (1, 2, 4, 50)] == pytest.approx([0.05, 0.1, 0.2, 0.2])
    assert rate_at(rates["warmup"], 1, 101, 0) == 0.2
    with pytest.raises(ValueError, match="length is not known"):
        rate_at(rates["cosine"], 1, None, 0)


def test_the_warm_up_is_that_of_the_learning_rate() -> None:
    """Two updates in the plan of the tests; no schedule, no warm-up; no bias, no rate."""
    router = sigmoid(rate="0.2", rate_schedule="warmup")
    plan = execution_plan(model=decoder(moe=moe(router=router)))
    assert [rate_of(plan, k) for k in (1, 2, 3)] == pytest.approx([0.1, 0.2, 0.2])
    without = attrs.evolve(plan, job=attrs.evolve(plan.job, schedule=None))
    assert rate_of(without, 1) == pytest.approx(0.2)
    assert rate_of(execution_plan(model=decoder(moe=moe())), 1) == rate_of(execution_plan(), 1) == 0
