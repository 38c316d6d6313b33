"""How do weights multiply, look up and score tokens?"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from forgeplan.diagnostics.refusal import InternalError
from forgeplan.runtime.model.module import Constant, Initial, Module, Normal, in_dtype_of

# B batch, S sequence, D model width, V vocabulary with padding


class Linear(nn.Linear, Module):
    """y = x·Wᵀ + b, with W (out, in) in the dtype of x."""

    def __init__(self, num_in: int, num_out: int, bias: bool, std: float) -> None:
        super().__init__(num_in, num_out, bias)
        self.std = std

    def forward(self, input: Tensor) -> Tensor:
        bias = None if self.bias is None else in_dtype_of(input, self.bias)
        return F.linear(input, in_dtype_of(input, self.weight), bias)

    def initial(self) -> dict[str, Initial]:
        return {"weight": Normal(self.std)} | ({} if self.bias is None else {"bias": Constant(0)})


class Embedding(Module):
    """Rows of a (V, D) table, in the dtype that the blocks compute in."""

    def __init__(self, vocab: int, dim: int, std: float) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(vocab, dim))
        self.std = std
        self.compute_dtype: torch.dtype | None = None
        """Dtype of the activations; None is the dtype of the weights."""

    def forward(self, tokens_BS: Tensor) -> Tensor:
        return F.embedding(tokens_BS, self.weight).to(self.compute_dtype or self.weight.dtype)

    def initial(self) -> dict[str, Initial]:
        return {"weight": Normal(self.std)}


class Head(Module):
    """Logits of the `vocab` real token ids. Rows that pad the table are multiplied, but their logits leave no trace.

    A tied head has no weight of its own and is called with the embedding's.
    """

    def __init__(self, dim: int, vocab: int, padded_vocab: int, std: float, tied: bool) -> None:
        super().__init__()
        self.weight = None if tied else nn.Parameter(torch.empty(padded_vocab, dim))
        self.vocab = vocab
        self.std = std

    def forward(self, x_BSD: Tensor, tied_VD: Tensor | None = None) -> Tensor:
        weight_VD = tied_VD if self.weight is None else self.weight
        if weight_VD is None:
            raise InternalError("a tied head is called without the embedding's table")
        logits = F.linear(x_BSD, in_dtype_of(x_BSD, weight_VD))
        # Never a view: FSDP hangs its hooks on what a unit returns, and an operation in place would lose them.
        return logits if logits.shape[-1] == self.vocab else logits[..., : self.vocab].contiguous()

    def initial(self) -> dict[str, Initial]:
        return {} if self.weight is None else {"weight": Normal(self.std)}
