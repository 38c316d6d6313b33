"""Do tokens choose the experts, and weigh them, as the papers say?"""

from __future__ import annotations

from functools import partial

import pytest
import torch

from forgeplan.runtime.model.moe.router import sigmoid_topk, softmax_topk
from forgeplan.runtime.model.moe.selection import best_experts
from forgeplan.spec.router.routers import SoftmaxTopk
from tests.runtime.model.moe.layers import layer, moe, sigmoid, tokens


def choosing(top_k: int = 2, **fields: int) -> partial[torch.Tensor]:
    return partial(best_experts, moe(top_k=top_k, **fields))


@pytest.mark.parametrize(("scale", "gates"), [("1", [0.362110, 0.637890]), ("2.5", [0.905274, 1.594726])])
def test_the_bias_chooses_and_never_weighs(scale: str, gates: list[float]) -> None:
    """C086: with the bias in the gates they would be .531689 and .468311, with it in the sigmoid 0 and 1 chosen."""
    logits, bias = torch.tensor([[2.0, 1.0, 0.0, -1.0]]).double(), torch.tensor([0.0, -0.5, 0.5, 0.0]).double()
    choice = sigmoid_topk(sigmoid(scale), logits, bias, choosing())
    assert choice.experts_TK.tolist() == [[2, 0]]
    assert choice.gates_TK[0].tolist() == pytest.approx(gates, abs=1e-6)


def test_softmax_gates_are_probabilities_over_all_experts() -> None:
    """e⁰, e⁻¹, e⁻², e⁻³ ÷ their sum; renormalised: 1/(1 + e⁻¹) and the rest."""
    logits = torch.tensor([[0.0, -1.0, -2.0, -3.0]]).double()
    whole = softmax_topk(SoftmaxTopk(renormalise=False), logits, None, choosing())
    assert whole.gates_TK[0].tolist() == pytest.approx([0.643914, 0.236883], abs=1e-6)
    scaled = softmax_topk(SoftmaxTopk(renormalise=True), logits, None, choosing())
    assert scaled.gates_TK[0].tolist() == pytest.approx([0.731059, 0.268941], abs=1e-6)


def test_sigmoids_that_are_all_zero_give_gates_of_zero() -> None:
    """In fp32 the sigmoid of −200 is 0; 0 ÷ 0 would poison the run."""
    logits = torch.full((1, 4), -200.0, requires_grad=True)
    choice = sigmoid_topk(sigmoid(), logits, torch.zeros(4), choosing())
    choice.gates_TK.sum().backward()
    assert choice.gates_TK.tolist() == [[0.0, 0.0]]
    assert logits.grad is not None
    assert logits.grad.isfinite().all()


def test_only_experts_of_the_best_groups_compete() -> None:
    """Groups (0 1) (2 3) (4 5) (6 7) have sums 9, 10.5, 11.1, 8.2: the best single score, 9, is in a group left out."""
    scores = torch.tensor([[9.0, 0.0, 5.0, 5.5, 6.0, 5.1, 4.0, 4.2]]).double()
    assert choosing(top_k=3, experts=8, groups=4, group_limit=2)(scores).tolist() == [[4, 3, 5]]
    assert choosing(top_k=3, experts=8, groups=4, group_limit=4)(scores).tolist() == [[0, 4, 3]]


def test_a_group_is_scored_by_its_two_best_experts_only() -> None:
    """Sums of all would be 9 and 12."""
    scores = torch.tensor([[5.0, 4.0, 0.0, 0.0, 3.0, 3.0, 3.0, 3.0]]).double()
    assert choosing(top_k=2, experts=8, groups=2, group_limit=1)(scores).tolist() == [[0, 1]]


def test_bf16_tokens_meet_the_router_in_fp32() -> None:
    """Its logits are those of the stored weights, which bf16 would round."""
    made = layer(moe(router=sigmoid()), dtype=torch.float32)
    x = tokens().flatten(0, 1).to(torch.bfloat16)
    choice = made.router(x)
    wanted = x.double() @ made.router.weight.double().T
    assert choice.logits_TE.dtype == choice.gates_TK.dtype == torch.float32
    assert torch.allclose(choice.logits_TE.double(), wanted, rtol=1e-5, atol=1e-6)
