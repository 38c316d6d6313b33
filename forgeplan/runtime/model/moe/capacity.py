"""Which assignments does an expert have room for?"""

from __future__ import annotations

from fractions import Fraction
from math import ceil

import torch
from torch import Tensor

from forgeplan.runtime.model.moe.counting import counted
from forgeplan.runtime.parallel.collectives import Group, gathered

# B batch, S positions of this rank, E experts, K experts of one token, N assignments: one for each token and expert of
# it, of the whole microbatch


@torch.no_grad()
def within_capacity(
    experts_BSK: Tensor, num_experts: int, factor: Fraction, places_S: Tensor, microbatch: Group
) -> Tensor:
    """Whether each assignment is among the first ⌈factor·N/E⌉ of its expert, as (B, S, K).

    One limit for all choices of a token: first choices come before second ones, then the order is that of rows and of
    places in the sequence. `places_S` are those of this rank's positions; the ranks of `microbatch` hold the others.
    """
    all_BSK = gathered(experts_BSK, microbatch, 1)
    order_S = gathered(places_S, microbatch, 0).argsort()
    in_turn_KBS = all_BSK[:, order_S].permute(2, 0, 1)
    limit = ceil(factor * all_BSK.numel() / num_experts)
    is_kept_KBS = _rank_at_expert(in_turn_KBS.flatten(), num_experts).view(in_turn_KBS.shape) < limit
    is_kept_BSK = torch.empty_like(all_BSK, dtype=torch.bool)
    is_kept_BSK[:, order_S] = is_kept_KBS.permute(1, 2, 0)
    return is_kept_BSK.chunk(microbatch.size, 1)[microbatch.index]


def _rank_at_expert(experts_N: Tensor, num_experts: int) -> Tensor:
    """How many earlier assignments have the same expert."""
    order_N = experts_N.argsort(stable=True)
    counts_E = counted(experts_N, num_experts)
    starts_E = counts_E.cumsum(0) - counts_E
    ranks_N = torch.empty_like(order_N)
    ranks_N[order_N] = torch.arange(len(order_N), device=order_N.device) - starts_E[experts_N[order_N]]
    return ranks_N
