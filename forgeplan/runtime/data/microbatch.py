"""What does the model get to see at once?"""

from __future__ import annotations

from attrs import frozen
from torch import Tensor

NOT_COUNTED = -100
"""A label at which nothing is learnt."""


@frozen
class Microbatch:
    """`batch.micro` sequences of one data rank. B batch, S sequence; all tensors are int64 on the CPU.

    `labels` are already shifted: position t holds the token at t + 1, or NOT_COUNTED. `positions` restart and
    `documents` number the documents of a sequence where the plan packs; both are None otherwise.
    """

    tokens_BS: Tensor
    labels_BS: Tensor
    positions_BS: Tensor | None = None
    documents_BS: Tensor | None = None
    sample: int = 0
    """Global index of the first sequence in the training order."""
