"""Which experts have the best scores for a token?"""

from __future__ import annotations

import torch
from torch import Tensor

from forgeplan.spec.model.moe import Moe

# T tokens, E experts, G groups of experts, K experts of one token

SCORED_IN_GROUP = 2
"""So many of its best scores make the score of a group."""


@torch.no_grad()
def best_experts(spec: Moe, scores_TE: Tensor) -> Tensor:
    """Numbers of the `top_k` best experts of each token, best first, as (T, K).

    With groups only those of the token's best groups compete (DeepSeek-V3, section 2.1.2: node-limited routing).
    """
    if spec.group_limit < spec.groups:
        scores_TE = _in_best_groups(spec, scores_TE)
    return scores_TE.topk(spec.top_k, -1).indices


def _in_best_groups(spec: Moe, scores_TE: Tensor) -> Tensor:
    """The scores, −∞ for experts outside of the `group_limit` best groups."""
    scores_TGE = scores_TE.unflatten(-1, (spec.groups, -1))
    scores_TG = scores_TGE.topk(SCORED_IN_GROUP, -1).values.sum(-1)
    is_left_out_TG = torch.ones_like(scores_TG, dtype=torch.bool)
    is_left_out_TG.scatter_(-1, scores_TG.topk(spec.group_limit, -1).indices, False)
    return scores_TGE.masked_fill(is_left_out_TG[..., None], -torch.inf).flatten(-2)
