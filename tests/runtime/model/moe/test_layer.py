"""Does a layer of experts compute each token's weighted sum, and what each of its parts learns from it?"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

from forgeplan.diagnostics.refusal import InternalError
from forgeplan.runtime.model.moe.layer import MoE
from forgeplan.runtime.parallel.axes import Axes
from forgeplan.runtime.parallel.collectives import Group
from tests.runtime.model.moe.layers import layer, moe, sigmoid, tokens

ROUTERS = {"softmax": {}, "sigmoid": {"router": sigmoid("2.5")}}


def token_by_token(made: MoE, x_BSD: Tensor) -> Tensor:
    """Σ gate·w_down(silu(w_gate·x) · w_up·x), one token and one expert at a time."""
    sums = []
    for x in x_BSD.flatten(0, 1):
        choice = made.router(x[None])
        total = torch.zeros_like(x)
        for expert, gate in zip(choice.experts_TK[0].tolist(), choice.gates_TK[0], strict=True):
            w = made.experts
            total = total + gate * (w.w_down[expert] @ (F.silu(w.w_gate[expert] @ x) * (w.w_up[expert] @ x)))
        if made.shared is not None:
            w = made.shared
            total = total + w.w_down.weight @ (F.silu(w.w_gate.weight @ x) * (w.w_up.weight @ x))
        sums.append(total)
    return torch.stack(sums).view_as(x_BSD)


def gradients(made: MoE, x: Tensor, y: Tensor) -> dict[str, Tensor]:
    generator = torch.Generator().manual_seed(9)
    y.backward(torch.randn(y.shape, generator=generator, dtype=y.dtype))
    found = {name: p.grad.clone() for name, p in made.named_parameters() if p.grad is not None}
    made.zero_grad()
    assert x.grad is not None
    return found | {"x": x.grad.clone()}


def same(ours: dict[str, Tensor], wanted: dict[str, Tensor], within: float = 1e-12) -> None:
    assert ours.keys() == wanted.keys()
    for name, gradient in wanted.items():
        assert (ours[name] - gradient).norm() <= within * gradient.norm(), name


@pytest.mark.parametrize("shared", [0, 2])
@pytest.mark.parametrize("router", ROUTERS)
def test_output_and_gradients_are_those_of_a_token_by_token_sum(router: str, shared: int) -> None:
    made = layer(moe(experts=6, top_k=3, shared=shared, **ROUTERS[router]))
    x, other = tokens().requires_grad_(), tokens().requires_grad_()
    y, wanted = made(x)[0], token_by_token(made, other)
    assert torch.allclose(y, wanted, rtol=1e-12, atol=1e-14)
    same(gradients(made, x, y), gradients(made, other, wanted))


def test_an_expert_that_nobody_chose_has_a_gradient_of_zero() -> None:
    made = layer(moe(top_k=1))
    x = tokens().abs().requires_grad_()
    with torch.no_grad():
        made.router.weight.copy_(torch.tensor([0.0, 0.0, 1.0, 0.0]).double()[:, None].expand(4, 16))
    y, routing = made(x)
    assert routing.counts_E.tolist() == [0, 0, 16, 0]
    found = gradients(made, x, y)
    assert [bool(part.any()) for part in found["experts.w_up"]] == [False, False, True, False]


def test_every_token_goes_to_every_expert_if_top_k_says_so() -> None:
    made, x = layer(moe(top_k=4)), tokens()
    y, routing = made(x)
    assert routing.counts_E.tolist() == [16] * 4
    assert torch.allclose(y, token_by_token(made, x), rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("capacity", [None, Fraction(1)], ids=["dropless", "capacity"])
def test_scaled_gradients_change_what_experts_learn_and_nothing_else(capacity: Fraction | None) -> None:
    """Expert e's gradient times mean load ÷ its load, load being what it computes; the function stays the same."""
    plain, scaled = (layer(moe(scale_gradients=on, capacity=capacity)) for on in (False, True))
    x, other = tokens().requires_grad_(), tokens().requires_grad_()
    (y, routing), (y_scaled, _) = plain(x), scaled(other)
    assert torch.equal(y, y_scaled)
    wanted, found = gradients(plain, x, y), gradients(scaled, other, y_scaled)
    counts = routing.counts_E.double()
    loads = counts if capacity is None else counts.clamp(max=8)
    assert len(set(loads.tolist())) > 1
    factors = loads.mean() / loads
    for name in ("experts.w_gate", "experts.w_up", "experts.w_down"):
        wanted[name] *= factors[:, None, None]
    same(found, wanted)


@pytest.mark.parametrize("fields", [{}, {"scale_gradients": True, "capacity": Fraction(1)}], ids=["plain", "scaled"])
def test_a_replayed_forward_gives_the_same_gradients(fields: dict[str, Any]) -> None:
    """Nothing is left on the module by forward, and losses keep their gradients through the replay."""
    made = layer(moe(balance=Fraction(1, 100), router=sigmoid(), **fields))
    x, other = tokens().requires_grad_(), tokens().requires_grad_()
    state = {name: dict(vars(m)) for name, m in made.named_modules()}
    y, routing = made(x)
    assert {name: dict(vars(m)) for name, m in made.named_modules()} == state
    replayed, again = checkpoint(made, other, use_reentrant=False)
    routing.balance.backward(retain_graph=True)
    wanted = gradients(made, x, y)
    again.balance.backward(retain_graph=True)
    same(gradients(made, other, replayed), wanted, within=0)


@pytest.mark.parametrize("mlp", ["swiglu", "geglu", "gelu", "relu", "relu2"])
def test_bf16_tokens_are_weighed_in_fp32(mlp: str) -> None:
    """Stated bound of bf16 for one layer: 1e-2 of the fp64 output of the same rounded weights and tokens."""
    made = layer(moe(), mlp=mlp, dtype=torch.bfloat16)
    exact = layer(moe(), mlp=mlp)
    exact.load_state_dict(made.state_dict())
    x = tokens().bfloat16()
    y, wanted = made(x)[0], exact(x.double())[0]
    assert y.dtype == torch.bfloat16
    assert (y.double() - wanted).norm() <= 1e-2 * wanted.norm()


def test_a_part_of_a_microbatch_must_know_its_places_where_capacity_counts() -> None:
    made = layer(moe(capacity=Fraction(1)))
    made.axes = Axes(microbatch=Group(2, 0, None))
    with pytest.raises(InternalError, match="does not know its places"):
        made(tokens())
