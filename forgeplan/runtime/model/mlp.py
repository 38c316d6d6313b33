"""What does a token do on its own, between attentions?"""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor
from torch.nn import functional as F

from forgeplan.runtime.model.linear import Linear
from forgeplan.runtime.model.module import Module
from forgeplan.spec.model.decoder import GATED, Decoder


def squared_relu(x: Tensor) -> Tensor:
    """So et al., 2021."""
    return F.relu(x).square()


ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "swiglu": F.silu,
    "geglu": F.gelu,
    "gelu": F.gelu,
    "relu": F.relu,
    "relu2": squared_relu,
}


class MLP(Module):
    """down(act(gate(x)) · up(x)) for the gated kinds (Shazeer, 2020), down(act(up(x))) for the others."""

    def __init__(self, spec: Decoder, std: float, residual_std: float) -> None:
        super().__init__()
        self.w_gate = Linear(spec.dim, spec.ffn, spec.bias, std) if spec.mlp in GATED else None
        self.w_up = Linear(spec.dim, spec.ffn, spec.bias, std)
        self.w_down = Linear(spec.ffn, spec.dim, spec.bias, residual_std)
        self.activation = ACTIVATIONS[spec.mlp]

    def forward(self, x: Tensor) -> Tensor:
        if self.w_gate is None:
            return self.w_down(self.activation(self.w_up(x)))
        return self.w_down(self.activation(self.w_gate(x)) * self.w_up(x))
