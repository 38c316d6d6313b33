"""Does AdamW update as torch's own, in every combination of dtypes, and decay what should decay?"""

from __future__ import annotations

from fractions import Fraction

import pytest
import torch

from forgeplan.runtime.executor import build
from forgeplan.runtime.optim.adamw import Moments, adamw_
from forgeplan.runtime.optim.optimizer import build_optimizer
from forgeplan.spec.plan import Precision
from tests.runtime.tiny import adamw, decoder, execution_plan, moe

CPU = torch.device("cpu")


def test_the_update_written_out_equals_torch() -> None:
    random = torch.Generator().manual_seed(0)
    ours = torch.randn(7, 5, dtype=torch.float64, generator=random)
    theirs = torch.nn.Parameter(ours.clone())
    state = Moments(torch.zeros_like(ours), torch.zeros_like(ours), torch.zeros(()))
    torch_adamw = torch.optim.AdamW([theirs], lr=0.01, betas=(0.9, 0.95), eps=1e-8, weight_decay=0.1)
    for _ in range(10):
        gradient = torch.randn(7, 5, dtype=torch.float64, generator=random)
        theirs.grad = gradient.clone()
        torch_adamw.step()
        state.step.add_(1)
        adamw_(ours, gradient, state, 0.01, (0.9, 0.95), 1e-8, 0.1)
    assert torch.allclose(ours, theirs.detach(), rtol=1e-13, atol=1e-15)


@pytest.mark.parametrize("moments", ["fp32", "bf16"])
@pytest.mark.parametrize("params", ["fp32", "bf16"])
def test_moments_and_weights_are_stored_as_planned(params: str, moments: str) -> None:
    """C047. Fused where weights and moments have one dtype, written out elsewhere; 100 steps of gradient 1, rate 6e-4.

    fp32 weights go from 1 to 0.94; bf16 weights (spacing 2⁻⁸ below 1) cannot move by 6e-4 and stay at exactly 1.
    """
    plan = execution_plan(
        model=decoder(layers=1),
        precision=Precision(params=params, compute="bf16", reduce="fp32", moments=moments),
        optimizer=adamw(weight_decay=Fraction(0)),
    )
    bundle = build(plan, CPU)
    optimizer = build_optimizer(bundle)
    weight = bundle.model.norm.weight
    for _ in range(100):
        weight.grad = torch.ones_like(weight)
        optimizer.update(6e-4)
    expected = 0.94 if params == "fp32" else 1.0
    assert weight[0].item() == pytest.approx(expected, abs=1e-4 if moments == "fp32" else 3e-3)
    state = optimizer.named_state()
    assert str(state["norm.weight"]["exp_avg"].dtype).endswith({"fp32": "float32", "bf16": "bfloat16"}[moments])
    assert state["norm.weight"]["step"].item() == 100
    assert state["embedding.weight"]["step"].item() == 0


@pytest.mark.parametrize("moments", ["fp64", "fp32", "bf16"])
@pytest.mark.parametrize("params", ["fp64", "fp32", "bf16"])
def test_weights_and_moments_of_every_two_dtypes_train(params: str, moments: str) -> None:
    """The first update moves every weight by the rate, whatever the gradient: from 1 to 3/4, which is exact in bf16."""
    plan = execution_plan(
        model=decoder(layers=1),
        precision=Precision(params=params, compute="fp32", reduce="fp32", moments=moments),
        optimizer=adamw(weight_decay=Fraction(0)),
    )
    bundle = build(plan, CPU)
    optimizer = build_optimizer(bundle)
    weight = bundle.model.norm.weight
    weight.grad = torch.full_like(weight, 2)
    optimizer.update(0.25)
    assert weight.tolist() == pytest.approx([0.75] * weight.numel(), rel=1e-6)


@pytest.mark.parametrize("tie", [False, True])
@pytest.mark.parametrize("decay_embeddings", [False, True])
def test_matrices_decay_and_norms_biases_and_embedding_do_not(decay_embeddings: bool, tie: bool) -> None:
    plan = execution_plan(
        model=decoder(bias=True, norm="layer", tie=tie, layers=1), optimizer=adamw(decay_embeddings=decay_embeddings)
    )
    optimizer = build_optimizer(build(plan, CPU))
    decayed, kept = optimizer.groups
    assert (decayed.weight_decay, kept.weight_decay) == (0.1, 0.0)
    attention = {f"layers.0.attention.{w}.weight" for w in ("wq", "wk", "wv", "wo")}
    mlp = {f"layers.0.mlp.{w}.weight" for w in ("w_gate", "w_up", "w_down")}
    table = {"embedding.weight"} if decay_embeddings else set()
    assert set(decayed.parameters) == attention | mlp | table | (set() if tie else {"head.weight"})
    assert decayed.parameters.keys() | kept.parameters.keys() == {p.name for p in plan.job.model.parameters()}


def test_experts_and_routers_decay_and_the_norms_beside_them_do_not() -> None:
    plan = execution_plan(model=decoder(layers=1, mtp=1, moe=moe(shared=1)))
    decayed, kept = build_optimizer(build(plan, CPU)).groups
    assert {name.rpartition("norm")[1] for name in kept.parameters if name != "embedding.weight"} == {"norm"}
    assert {name.split(".")[-2] for name in decayed.parameters if ".moe." in name} == {
        "router", "experts", "w_gate", "w_up", "w_down",
    }  # fmt: skip
    assert "mtp.0.projection.weight" in decayed.parameters


def test_a_step_with_an_empty_group_works() -> None:
    bundle = build(execution_plan(), CPU)
    for name, parameter in bundle.model.named_parameters():
        parameter.requires_grad_("norm" in name)
        parameter.grad = torch.ones_like(parameter) if "norm" in name else None
    frozen = bundle.model.head.weight.detach().clone()
    optimizer = build_optimizer(bundle)
    optimizer.update(0.5)
    assert bundle.model.norm.weight[0].item() == pytest.approx(0.5)
    assert torch.equal(bundle.model.head.weight, frozen)
    assert [group.weight_decay for group in optimizer.groups] == [0.1, 0.0]
