"""How many tokens does each expert get?"""

from __future__ import annotations

import torch
from torch import Tensor


def counted(experts_BN: Tensor, num_experts: int) -> Tensor:
    """How often each expert's number stands in each row of (…, N), as (…, E)."""
    counts = experts_BN.new_zeros((*experts_BN.shape[:-1], num_experts))
    return counts.scatter_add_(-1, experts_BN, torch.ones_like(experts_BN))
