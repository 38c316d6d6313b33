"""Is the gradient norm that of all gradients together?"""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from forgeplan.runtime.clip import clip_, square_sum

CPU = torch.device("cpu")


def model_with_gradients(dtype: torch.dtype) -> nn.Module:
    model = nn.Sequential(nn.Linear(5, 7), nn.Linear(7, 3)).to(dtype)
    for number, p in enumerate(model.parameters()):
        p.grad = torch.randn(p.shape, generator=torch.Generator().manual_seed(number)).to(dtype)
    model[1].bias.grad = None
    return model


def gradients(model: nn.Module) -> list[Tensor]:
    return [p.grad for p in model.parameters() if p.grad is not None]


def alone(model: nn.Module) -> list[tuple[int, Tensor]]:
    return [(1, gradient) for gradient in gradients(model)]


@pytest.mark.parametrize(("dtype", "within"), [(torch.float64, 1e-14), (torch.float32, 1e-6), (torch.bfloat16, 1e-6)])
def test_the_norm_is_that_of_one_long_vector(dtype: torch.dtype, within: float) -> None:
    model = model_with_gradients(dtype)
    together = torch.cat([p.grad.flatten() for p in model.parameters() if p.grad is not None]).double()
    assert square_sum(alone(model), CPU).sqrt().item() == pytest.approx(together.norm().item(), rel=within)


def test_clipping_shortens_to_the_limit_and_leaves_short_gradients_alone() -> None:
    model = model_with_gradients(torch.float64)
    norm = square_sum(alone(model), CPU).sqrt().item()
    before = [g.clone() for g in gradients(model)]
    clip_(gradients(model), norm, norm * 2)
    assert all(torch.equal(a, b) for a, b in zip(before, gradients(model), strict=True))
    clip_(gradients(model), norm, norm / 4)
    assert square_sum(alone(model), CPU).sqrt().item() == pytest.approx(norm / 4, rel=1e-5)


def test_no_gradients_have_norm_zero() -> None:
    assert square_sum([], CPU).item() == 0


def test_ranks_that_hold_the_same_part_share_its_length() -> None:
    ones = torch.ones(8, dtype=torch.float64)
    assert square_sum([(4, ones), (1, ones)], CPU).item() == pytest.approx(8 / 4 + 8)
