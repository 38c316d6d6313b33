"""Do one kernel for all experts and a loop over them compute the same, also for experts without tokens?"""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from forgeplan.runtime.init import initialise
from forgeplan.runtime.model.moe.experts import Experts, can_group, grouped, looped
from tests.runtime.model.moe.layers import layer, moe

COUNTS = {"some": [5, 0, 7, 4], "one_expert": [0, 0, 9, 0], "none": [0, 0, 0, 0]}


def random(*shape: int, seed: int, dtype: torch.dtype) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed)).to(dtype).requires_grad_()


def with_gradients(product: Any, counts: list[int], dtype: torch.dtype) -> list[Tensor]:
    x, weight = random(sum(counts), 16, seed=1, dtype=dtype), random(4, 24, 16, seed=2, dtype=dtype)
    y = product(x, weight, torch.tensor(counts))
    y.backward(random(*y.shape, seed=3, dtype=dtype).detach())
    assert x.grad is not None
    assert weight.grad is not None
    return [y, x.grad, weight.grad]


@pytest.mark.parametrize("counts", COUNTS.values(), ids=COUNTS)
@pytest.mark.parametrize(("dtype", "within"), [(torch.float32, 1e-6), (torch.bfloat16, 2e-2)], ids=str)
def test_grouped_products_equal_the_loop(counts: list[int], dtype: torch.dtype, within: float) -> None:
    assert can_group(torch.empty(1, 16, dtype=dtype), torch.empty(4, 24, 16))
    for one, other in zip(
        with_gradients(grouped, counts, dtype), with_gradients(looped, counts, torch.float64), strict=True
    ):
        assert (one.double() - other).norm() <= within * max(other.norm().item(), 1e-30)


@pytest.mark.parametrize("counts", COUNTS.values(), ids=COUNTS)
def test_experts_without_tokens_have_gradients_of_zero(counts: list[int]) -> None:
    for product in (grouped, looped):
        gradient = with_gradients(product, counts, torch.float32)[2]
        assert [bool(part.any()) for part in gradient] == [count > 0 for count in counts]


@pytest.mark.parametrize(
    ("dtype", "ffn", "can"),
    [(torch.float64, 24, False), (torch.float32, 22, False), (torch.bfloat16, 20, False), (torch.bfloat16, 24, True)],
    ids=str,
)
def test_what_the_kernel_cannot_take_goes_to_the_loop(dtype: torch.dtype, ffn: int, can: bool) -> None:
    """No fp64, and rows of whole 16 bytes only: 22·4 and 20·2 are not."""
    x, stack = torch.randn(3, 16, dtype=dtype), torch.randn(2, ffn, 16, dtype=dtype)
    assert can_group(x, stack) is can
    made = Experts(2, 16, ffn, "relu2", False, (1.0, 1.0)).to(dtype)
    initialise(made, seed=1)
    y = made(x, torch.tensor([2, 1]))
    for rows, out, up, down in zip(x.split([2, 1]), y.split([2, 1]), made.w_up, made.w_down, strict=True):
        wanted = (rows.double() @ up.double().T).relu().square() @ down.double().T
        assert (out.double() - wanted).norm() <= 1e-2 * wanted.norm()


def test_output_projections_of_packed_experts_are_scaled_down_at_initialisation() -> None:
    """C091: 8 layers, std .02: .02/√16 = .0050 ± 5 % for packed stacks, as for the shared experts' Linear."""
    from forgeplan.runtime.model.decoder import Transformer
    from tests.runtime.tiny import decoder

    spec = decoder(layers=8, dim=64, moe=moe(experts=2, ffn=512, shared=1))
    model = Transformer(spec)
    initialise(model, seed=11)
    made = model.layers["7"].moe
    assert made.experts.w_down.shape == (2, 64, 512)
    for weight in (*made.experts.w_down, made.shared.w_down.weight):
        assert weight.std().item() == pytest.approx(0.0050, rel=0.05)
    for weight in (*made.experts.w_up, *made.experts.w_gate, made.shared.w_up.weight):
        assert weight.std().item() == pytest.approx(0.02, rel=0.05)


def test_router_weights_start_like_inner_weights_and_its_bias_at_zero() -> None:
    """C091: N(0, init_std), not scaled."""
    from tests.runtime.model.moe.layers import sigmoid

    made = layer(moe(experts=256, router=sigmoid()), dim=64, spread=0.02)
    assert made.router.weight.std().item() == pytest.approx(0.02, rel=0.05)
    assert made.router.bias.tolist() == [0.0] * 256
