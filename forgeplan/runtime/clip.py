"""How long is the gradient of the whole model, and how is it shortened?"""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor, nn
from torch.distributed.tensor import DTensor, Replicate

from forgeplan.runtime.precision import at_least_fp32_dtype


def gradients_of(model: nn.Module) -> list[Tensor]:
    """This rank's part of every gradient there is."""
    return [_local(p.grad) for p in model.parameters() if p.grad is not None]


def square_sum(model: nn.Module, device: torch.device) -> Tensor:
    """This rank's share of the squared global gradient norm, fp64: summed over all ranks, each element counts once.

    Ranks that hold the same shard each add their part of it.
    """
    total = torch.zeros((), dtype=torch.float64, device=device)
    for copies, gradients in _by_copies(model).items():
        norms = torch._foreach_norm(gradients, 2, dtype=at_least_fp32_dtype(gradients[0].dtype))
        total += torch.stack(norms).double().square().sum() / copies
    return total


def clip_(gradients: Iterable[Tensor], norm: float, largest: float) -> None:
    """Scale gradients in place so that their global norm, which is `norm`, is at most `largest`."""
    factor = largest / (norm + 1e-6)
    if factor < 1:
        torch._foreach_mul_(list(gradients), factor)


def _by_copies(model: nn.Module) -> dict[int, list[Tensor]]:
    found: dict[int, list[Tensor]] = {}
    for parameter in model.parameters():
        if parameter.grad is not None and _local(parameter.grad).numel():
            found.setdefault(_copies(parameter.grad), []).append(_local(parameter.grad))
    return found


def _copies(gradient: Tensor) -> int:
    """How many ranks hold the same shard."""
    if not isinstance(gradient, DTensor):
        return 1
    copies = 1
    for size, placement in zip(gradient.device_mesh.shape, gradient.placements, strict=True):
        copies *= size if isinstance(placement, Replicate) else 1
    return copies


def _local(gradient: Tensor) -> Tensor:
    return gradient.to_local() if isinstance(gradient, DTensor) else gradient
