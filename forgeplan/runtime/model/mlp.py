"""What does a token do on its own, between attentions?"""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor
from torch.nn import functional as F

from forgeplan.runtime.model.linear import Linear
from forgeplan.runtime.model.module import Module
from forgeplan.spec.model.decoder import GATED, Decoder

# B batch, S positions of this rank, D model width, F hidden width


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
    """down(act(gate(x)) · up(x)) for the gated kinds (Shazeer, 2020), down(act(up(x))) for the others.

    `width` and `bias` are the plan's unless given.
    """

    def __init__(
        self, spec: Decoder, std: float, residual_std: float, width: int | None = None, bias: bool | None = None
    ) -> None:
        super().__init__()
        width = spec.ffn if width is None else width
        bias = spec.bias if bias is None else bias
        self.w_gate = Linear(spec.dim, width, bias, std) if spec.mlp in GATED else None
        self.w_up = Linear(spec.dim, width, bias, std)
        self.w_down = Linear(width, spec.dim, bias, residual_std, is_row=True)
        self.activation = ACTIVATIONS[spec.mlp]

    def forward(self, x_BSD: Tensor) -> Tensor:
        x_BSD = self.axes.tp.enter(x_BSD)
        if self.w_gate is None:
            hidden_BSF = self.activation(self.w_up(x_BSD))
        else:
            hidden_BSF = self.activation(self.w_gate(x_BSD)) * self.w_up(x_BSD)
        return self.axes.tp.leave(self.w_down(hidden_BSF))
