"""How long is the gradient of the whole model, and how is it shortened?"""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor

from forgeplan.runtime.precision import at_least_fp32_dtype


def square_sum(gradients: Iterable[tuple[int, Tensor]], device: torch.device) -> Tensor:
    """This rank's share of the squared global gradient norm, fp64: summed over all ranks, each element counts once.

    Gradients are this rank's parts, each with the number of ranks that hold the same part: all of them add their share.
    """
    by_copies: dict[tuple[int, torch.dtype], list[Tensor]] = {}
    for copies, gradient in gradients:
        if gradient.numel():
            by_copies.setdefault((copies, gradient.dtype), []).append(gradient)
    total = torch.zeros((), dtype=torch.float64, device=device)
    for (copies, dtype), parts in by_copies.items():
        norms = torch._foreach_norm(parts, 2, dtype=at_least_fp32_dtype(dtype))
        total += (torch.stack(norms).double().square().sum() / copies).to(device)
    return total


def clip_(gradients: Iterable[Tensor], norm: float, largest: float) -> None:
    """Scale gradients in place so that their global norm, which is `norm`, is at most `largest`."""
    factor = largest / (norm + 1e-6)
    if factor < 1:
        torch._foreach_mul_(list(gradients), factor)
