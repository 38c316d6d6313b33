"""Between which blocks of queries and keys does FlexAttention have to look?

Found from the bounds of each block, without the mask itself: that has an element for every query and key, and of a long
sequence more of them than the activations of a layer.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.nn.attention.flex_attention import BlockMask

# B batch, or 1 where all rows are alike; S queries, T keys, Q blocks of queries, K blocks of keys

BLOCK = 128
"""Queries, and keys, of a block."""


def block_mask(
    queries_S: Tensor,
    keys_T: Tensor,
    window: int | None,
    documents_BT: Tensor | None,
    sees: Callable[[Tensor, Tensor, Tensor, Tensor], Tensor],
) -> Any:
    """The BlockMask of causal attention within documents and the window.

    Queries and keys are given by their places, documents lie in the order of places. `sees` says it of each pair: the
    kernel asks only in blocks that are neither visible nor hidden as a whole. A block may be asked about in vain where
    places or documents do not rise.
    """
    (first_Q, last_Q), (first_K, last_K) = _bounds(queries_S), _bounds(keys_T)
    some_BQK = (last_Q[:, None] >= first_K)[None]
    every_BQK = (first_Q[:, None] >= last_K)[None] & (_whole(queries_S)[:, None] & _whole(keys_T))
    if window is not None:
        some_BQK = some_BQK & (first_Q[:, None] - last_K < window)
        every_BQK = every_BQK & (last_Q[:, None] - first_K < window)
    if documents_BT is not None:
        low_BQ1, high_BQ1 = (x[:, :, None] for x in _bounds(documents_BT[:, queries_S]))
        low_B1K, high_B1K = (x[:, None, :] for x in _bounds(documents_BT[:, keys_T]))
        some_BQK = some_BQK & (low_BQ1 <= high_B1K) & (low_B1K <= high_BQ1) & (high_BQ1 >= 0)
        every_BQK = every_BQK & (low_BQ1 == high_B1K) & (low_B1K == high_BQ1) & (low_BQ1 >= 0)
    return BlockMask.from_kv_blocks(
        *_listed(some_BQK & ~every_BQK),
        *_listed(every_BQK),
        BLOCK_SIZE=BLOCK,
        mask_mod=sees,
        seq_lengths=(len(queries_S), len(keys_T)),
    )


def _bounds(x_N: Tensor) -> tuple[Tensor, Tensor]:
    """Least and greatest value of each block along the last dim; the last block may be shorter."""
    length = x_N.shape[-1]
    filled = torch.arange(-(-length // BLOCK) * BLOCK, device=x_N.device).clamp(max=length - 1)
    low, high = x_N[..., filled].unflatten(-1, (-1, BLOCK)).aminmax(dim=-1)
    return low, high


def _whole(x_N: Tensor) -> Tensor:
    """Of each block, whether it has all its elements."""
    ends = torch.arange(-(-len(x_N) // BLOCK), device=x_N.device) * BLOCK + BLOCK
    return ends <= len(x_N)


def _listed(chosen_BQK: Tensor) -> tuple[Tensor, Tensor]:
    """(B, 1, Q) how many blocks of keys are chosen, and (B, 1, Q, K) their numbers, then those of the others; int32."""
    order_BQK = chosen_BQK.int().argsort(dim=-1, descending=True, stable=True)
    return chosen_BQK.sum(-1, dtype=torch.int32)[:, None], order_BQK.int()[:, None].contiguous()
