"""Which experts does a token go to, and with which weight?"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from forgeplan.runtime.model.module import Constant, Initial, Module, Normal
from forgeplan.runtime.model.moe.selection import best_experts
from forgeplan.runtime.precision import at_least_fp32
from forgeplan.runtime.registry import implementation, register
from forgeplan.spec.model.moe import Moe
from forgeplan.spec.router.routers import SigmoidTopk, SoftmaxTopk

# T tokens, D model width, E experts, K experts of one token


class Choice(NamedTuple):
    """What the router says of T tokens, in at least fp32."""

    experts_TK: Tensor
    """Numbers of the experts that a token goes to, best first."""
    gates_TK: Tensor
    """Weights of their outputs in the token's sum."""
    shares_TE: Tensor
    """Scores of all experts, divided by their sum."""
    logits_TE: Tensor


Choose = Callable[[Tensor], Tensor]
"""From scores (T, E) to the numbers of the best experts (T, K)."""


class Router(Module):
    """Scores of every expert, computed from the weight as it is stored, in at least fp32."""

    keeps_stored_dtype = True

    def __init__(self, spec: Moe, dim: int, std: float) -> None:
        super().__init__()
        self.spec = spec
        self.std = std
        self.weight = nn.Parameter(torch.empty(spec.experts, dim))
        self.register_buffer("bias", torch.empty(spec.experts) if spec.router.has_bias else None)

    def forward(self, x_TD: Tensor) -> Choice:
        logits_TE = F.linear(at_least_fp32(x_TD), at_least_fp32(self.weight))
        rule = implementation("router", self.spec.router)
        return rule(self.spec.router, logits_TE, self.bias, partial(best_experts, self.spec))

    def initial(self) -> dict[str, Initial]:
        return {"weight": Normal(self.std)} | ({} if self.bias is None else {"bias": Constant(0)})


@register.router("softmax_topk", spec=SoftmaxTopk)
def softmax_topk(spec: SoftmaxTopk, logits_TE: Tensor, bias_E: Tensor | None, choose: Choose) -> Choice:
    """Gates are probabilities over all experts (Shazeer et al., 2017), divided by their sum if so specified."""
    shares_TE = logits_TE.softmax(-1)
    experts_TK = choose(shares_TE.detach())
    gates_TK = shares_TE.gather(-1, experts_TK)
    return Choice(experts_TK, _normalised(gates_TK) if spec.renormalise else gates_TK, shares_TE, logits_TE)


@register.router("sigmoid_topk", spec=SigmoidTopk)
def sigmoid_topk(spec: SigmoidTopk, logits_TE: Tensor, bias_E: Tensor | None, choose: Choose) -> Choice:
    """The bias takes part in the choice and nowhere else (DeepSeek-V3, equations 13, 15 and 16)."""
    scores_TE = logits_TE.sigmoid()
    experts_TK = choose(scores_TE.detach() if bias_E is None else scores_TE.detach() + bias_E)
    gates_TK = _normalised(scores_TE.gather(-1, experts_TK)) * float(spec.scale)
    return Choice(experts_TK, gates_TK, _normalised(scores_TE), logits_TE)


def _normalised(scores: Tensor) -> Tensor:
    """Divided by their sum; sigmoids of very negative logits may all be zero."""
    return scores / scores.sum(-1, keepdim=True).clamp(min=torch.finfo(scores.dtype).tiny)
