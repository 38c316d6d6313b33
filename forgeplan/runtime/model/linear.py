"""How do weights multiply, look up and score tokens?"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from forgeplan.diagnostics.refusal import InternalError
from forgeplan.runtime.model.module import Constant, Initial, Module, Normal, in_dtype_of

# B batch, S sequence, D model width, V vocabulary with padding

Product = Callable[..., Tensor]
"""x·Wᵀ + b of x, W and b, as `F.linear`; an operation of the program may put another in its place."""


class Linear(nn.Linear, Module):
    """y = x·Wᵀ + b, with W (out, in) in the dtype of x.

    `is_row`: tp divides the inputs. The products of its ranks are then parts of a sum, to which one of them adds b.
    """

    def __init__(self, num_in: int, num_out: int, bias: bool, std: float, *, is_row: bool = False) -> None:
        super().__init__(num_in, num_out, bias)
        self.std = std
        self.is_row = is_row
        self.product: Product = F.linear

    def forward(self, input: Tensor) -> Tensor:
        return self.product(input, in_dtype_of(input, self.weight), self.bias_for(input))

    def bias_for(self, x: Tensor) -> Tensor | None:
        """The bias that this rank adds, in the dtype of x: times zero, not left out, so that each has a gradient."""
        own: Tensor | None = self.bias
        if own is None:
            return None
        bias = in_dtype_of(x, own)
        return bias * 0 if self.is_row and self.axes.tp.group.index > 0 else bias

    def initial(self) -> dict[str, Initial]:
        return {"weight": Normal(self.std)} | ({} if self.bias is None else {"bias": Constant(0)})


class Embedding(Module):
    """Rows of a (V, D) table, in the dtype that the blocks compute in. A tp rank has a run of the rows."""

    def __init__(self, vocab: int, dim: int, std: float) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(vocab, dim))
        self.std = std
        self.compute_dtype: torch.dtype | None = None
        """Dtype of the activations; None is the dtype of the weights."""

    def forward(self, tokens_BS: Tensor) -> Tensor:
        tp = self.axes.tp
        if tp.group.size == 1:
            return F.embedding(tokens_BS, self.weight).to(self.compute_dtype or self.weight.dtype)
        rows_BS = tokens_BS - tp.group.index * self.weight.shape[0]
        elsewhere_BS = (rows_BS < 0) | (rows_BS >= self.weight.shape[0])
        found_BSD = F.embedding(rows_BS.masked_fill(elsewhere_BS, 0), self.weight)
        found_BSD = found_BSD.masked_fill(elsewhere_BS[..., None], 0)
        return tp.leave(found_BSD.to(self.compute_dtype or self.weight.dtype))

    def initial(self) -> dict[str, Initial]:
        return {"weight": Normal(self.std)}


class Head(Module):
    """Logits of the `vocab` real token ids; of a tp rank those of its run of rows.

    Rows that pad the table are multiplied, but their logits leave no trace. A tied head has no weight of its own and is
    called with the embedding's.
    """

    def __init__(self, dim: int, vocab: int, padded_vocab: int, std: float, tied: bool) -> None:
        super().__init__()
        self.weight = None if tied else nn.Parameter(torch.empty(padded_vocab, dim))
        self.vocab = vocab
        self.std = std
        self.product: Product = F.linear

    def forward(self, x_BSD: Tensor, tied_VD: Tensor | None = None) -> Tensor:
        weight_VD = tied_VD if self.weight is None else self.weight
        if weight_VD is None:
            raise InternalError("a tied head is called without the embedding's table")
        logits = self.product(self.axes.tp.enter(x_BSD), in_dtype_of(x_BSD, weight_VD))
        real = self.vocab - self.axes.tp.group.index * logits.shape[-1]
        # Never a view: FSDP hangs its hooks on what a unit returns, and an operation in place would lose them.
        return logits if real >= logits.shape[-1] else logits[..., : max(real, 0)].contiguous()

    def initial(self) -> dict[str, Initial]:
        return {} if self.weight is None else {"weight": Normal(self.std)}
