"""What do the experts that this rank holds make of the tokens sent to them?"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from forgeplan.runtime.model.mlp import ACTIVATIONS
from forgeplan.runtime.model.module import Initial, Module, Normal, in_dtype_of

# N rows sorted by expert, E experts of this rank, D model width, F hidden width of one expert

Product = Callable[[Tensor, Tensor, Tensor], Tensor]
"""(rows (N, in), weights (E, out, in), counts (E,)) to (N, out): each expert's rows by its own matrix."""

GROUPED_DTYPES = {"cpu": (torch.float32, torch.bfloat16), "cuda": (torch.bfloat16,)}
GROUPED_STRIDE_BYTES = 16
"""Rows of both operands start at multiples of it."""


class Experts(Module):
    """An MLP for each expert, of the model's kind, with the matrices of all experts in one stack and without biases."""

    def __init__(self, num_experts: int, dim: int, ffn: int, mlp: str, is_gated: bool, stds: tuple[float, float]):
        """`stds` are the standard deviations of initial weights: of inner ones, and of those into the residual."""
        super().__init__()
        self.w_gate = nn.Parameter(torch.empty(num_experts, ffn, dim)) if is_gated else None
        self.w_up = nn.Parameter(torch.empty(num_experts, ffn, dim))
        self.w_down = nn.Parameter(torch.empty(num_experts, dim, ffn))
        self.activation = ACTIVATIONS[mlp]
        self.stds = stds

    def forward(self, x_ND: Tensor, counts_E: Tensor) -> Tensor:
        """Rows of the first expert first; `counts_E` says how many each has."""
        product = grouped if can_group(x_ND, self.w_up) else looped
        up_NF = product(x_ND, self.w_up, counts_E)
        if self.w_gate is None:
            return product(self.activation(up_NF), self.w_down, counts_E)
        gate_NF = product(x_ND, self.w_gate, counts_E)
        return product(self.activation(gate_NF) * up_NF, self.w_down, counts_E)

    def initial(self) -> dict[str, Initial]:
        inner, residual = map(Normal, self.stds)
        gate: dict[str, Initial] = {} if self.w_gate is None else {"w_gate": inner}
        return gate | {"w_up": inner, "w_down": residual}


def can_group(x_ND: Tensor, weight_EFD: Tensor) -> bool:
    """Whether torch multiplies such rows by all experts at once."""
    if x_ND.dtype not in GROUPED_DTYPES.get(x_ND.device.type, ()):
        return False
    return all(size * x_ND.element_size() % GROUPED_STRIDE_BYTES == 0 for size in weight_EFD.shape[1:])


def grouped(x_NI: Tensor, weight_EOI: Tensor, counts_E: Tensor) -> Tensor:
    """One kernel for all experts; the host need not know the counts."""
    ends_E = counts_E.cumsum(0).to(torch.int32)
    return F.grouped_mm(x_NI, in_dtype_of(x_NI, weight_EOI).transpose(-2, -1), offs=ends_E)


def looped(x_NI: Tensor, weight_EOI: Tensor, counts_E: Tensor) -> Tensor:
    """Expert by expert. One without rows takes part too, so that its gradient is zero, not missing."""
    parts = zip(x_NI.split(counts_E.tolist()), in_dtype_of(x_NI, weight_EOI).unbind(), strict=True)
    return torch.cat([F.linear(rows, weight_OI) for rows, weight_OI in parts])
