"""How does a test get a layer of experts?"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import torch
from torch import Tensor

from forgeplan.runtime.init import initialise
from forgeplan.runtime.model.moe.layer import MoE
from forgeplan.runtime.model.moe.router import Choice
from forgeplan.spec.model.moe import Moe
from forgeplan.spec.router.routers import SigmoidTopk, SoftmaxTopk
from tests.runtime.tiny import decoder

SOFTMAX = SoftmaxTopk(renormalise=True)


def sigmoid(scale: str = "1", rate: str = "1e-3", rate_schedule: str = "constant") -> SigmoidTopk:
    return SigmoidTopk(scale=Fraction(scale), rate=Fraction(rate), rate_schedule=rate_schedule)


def moe(**fields: Any) -> Moe:
    given: dict[str, Any] = {
        "experts": 4, "top_k": 2, "ffn": 8, "every": 1, "first_dense": 0, "shared": 0, "router": SOFTMAX, "groups": 1,
        "group_limit": None, "capacity": None, "balance": Fraction(0), "sequence_balance": Fraction(0),
        "z": Fraction(0), "scale_gradients": False,
    } | fields  # fmt: skip
    given["group_limit"] = given["group_limit"] or given["groups"]
    return Moe(**given)


def layer(spec: Moe, *, dim: int = 16, mlp: str = "swiglu", spread: float = 0.3, dtype: Any = torch.float64) -> MoE:
    """A layer whose weights are functions of their names and shapes, and large enough for clear choices."""
    made = MoE(decoder(dim=dim, mlp=mlp, moe=spec), std=spread, residual_std=spread).to(dtype)
    initialise(made, seed=3)
    return made


def tokens(batch: int = 2, length: int = 8, dim: int = 16, seed: int = 0) -> Tensor:
    return torch.randn(batch, length, dim, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def choice_of(logits: list[tuple[float, ...]], top_k: int) -> Choice:
    """What a softmax router says of these rows of logits."""
    logits_TE = torch.tensor(logits, dtype=torch.float64, requires_grad=True)
    shares_TE = logits_TE.softmax(-1)
    gates_TK, experts_TK = shares_TE.topk(top_k, -1)
    return Choice(experts_TK, gates_TK, shares_TE, logits_TE)
