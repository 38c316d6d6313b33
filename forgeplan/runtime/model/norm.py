"""How are activations normalised?"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from forgeplan.runtime.model.module import Constant, Initial, Module, in_dtype_of
from forgeplan.runtime.precision import at_least_fp32


class RMSNorm(Module):
    """x / √(mean x² + eps) · w over the last dim, in at least fp32, then in the dtype of x (Zhang, Sennrich, 2019)."""

    def __init__(self, dim: int, eps: float) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(dim))
        self.eps = eps

    def forward(self, x: Tensor) -> Tensor:
        weight = at_least_fp32(in_dtype_of(x, self.weight))
        return F.rms_norm(at_least_fp32(x), weight.shape, weight, self.eps).to(x.dtype)

    def initial(self) -> dict[str, Initial]:
        return {"weight": Constant(1)}


class LayerNorm(RMSNorm):
    """(x − mean) / √(variance + eps) · w + b over the last dim (Ba et al., 2016), in at least fp32."""

    def __init__(self, dim: int, eps: float) -> None:
        super().__init__(dim, eps)
        self.bias = nn.Parameter(torch.empty(dim))

    def forward(self, x: Tensor) -> Tensor:
        weight, bias = (at_least_fp32(in_dtype_of(x, w)) for w in (self.weight, self.bias))
        return F.layer_norm(at_least_fp32(x), weight.shape, weight, bias, self.eps).to(x.dtype)

    def initial(self) -> dict[str, Initial]:
        return {"weight": Constant(1), "bias": Constant(0)}


NORMS: dict[str, type[RMSNorm]] = {"rms": RMSNorm, "layer": LayerNorm}
