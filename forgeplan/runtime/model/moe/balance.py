"""How evenly are tokens spread over experts, and what does it cost if they are not?

All statistics are those of one microbatch, summed over the ranks that share it. Each of these ranks answers with its
share of the losses: shares add up to the value of the microbatch, and their gradients to its gradient.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from forgeplan.runtime.model.moe.counting import counted
from forgeplan.runtime.model.moe.router import Choice
from forgeplan.runtime.parallel.collectives import Group, shared_sum
from forgeplan.spec.model.moe import Moe

# B sequences, S positions of this rank, T = B·S tokens, E experts, K experts of one token


class Losses(NamedTuple):
    """This rank's share of each loss, times its weight: scalars in at least fp32."""

    balance: Tensor
    sequence_balance: Tensor
    z: Tensor


def losses(spec: Moe, choice: Choice, batch: int, microbatch: Group) -> Losses:
    """E·Σ fₑ·Pₑ over the microbatch (Switch, equation 4) and, as a mean, over each sequence (DeepSeek-V3, equation 17);
    mean of log²Σexp of the logits (ST-MoE, equation 5).

    f is the share of assignments that an expert gets before any is dropped, P its mean share of the scores. Both
    balance losses are 1 where all experts get the same. Ranks of `microbatch` hold equal parts of every sequence.
    """
    if not (spec.balance or spec.sequence_balance or spec.z):
        nothing = choice.shares_TE.new_zeros(())
        return Losses(nothing, nothing, nothing)
    counts_BE = counted(choice.experts_TK.view(batch, -1), spec.experts)
    scores_BE = choice.shares_TE.unflatten(0, (batch, -1)).sum(1)
    z = choice.logits_TE.logsumexp(-1).square().sum()
    local = torch.cat([counts_BE.to(z.dtype).flatten(), scores_BE.flatten(), z[None]])
    *pairs, z = shared_sum(local, microbatch).split([counts_BE.numel(), counts_BE.numel(), 1])
    counts_BE, scores_BE = (x.view(batch, -1) for x in pairs)
    length = len(choice.experts_TK) // batch * microbatch.size
    return Losses(
        float(spec.balance) / microbatch.size * _imbalance(counts_BE.sum(0), scores_BE.sum(0), spec, batch * length),
        float(spec.sequence_balance) / microbatch.size * _imbalance(counts_BE, scores_BE, spec, length).mean(),
        float(spec.z) / microbatch.size * z.squeeze(0) / (batch * length),
    )


def _imbalance(counts_E: Tensor, scores_E: Tensor, spec: Moe, num_tokens: int) -> Tensor:
    """E·Σ fₑ·Pₑ over the last dim, from sums over so many tokens."""
    return spec.experts * (counts_E / (spec.top_k * num_tokens) * scores_E / num_tokens).sum(-1)


@torch.no_grad()
def entropy(choice: Choice) -> Tensor:
    """−Σ p·log p of the shares of each token's scores, in nats, summed over tokens."""
    return torch.special.entr(choice.shares_TE).sum()
