"""How does a model predict more than one token ahead?

DeepSeek-V3 (arXiv 2412.19437), section 2.2: module k joins what the module before it made of a token with the embedding
of the token k later, and predicts the token after that, with the model's own embedding and head.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from forgeplan.runtime.data.microbatch import NOT_COUNTED
from forgeplan.runtime.model.linear import Linear
from forgeplan.runtime.model.module import Module
from forgeplan.runtime.model.norm import NORMS
from forgeplan.spec.model.decoder import Decoder

# B batch, S positions, D model width, E = 2·D


class Further(NamedTuple):
    hidden_BSD: Tensor
    """For the next module."""
    normed_BSD: Tensor
    """For the head."""
    routing: Any
    """What the router of the block did, if it has one."""


class FurtherToken(Module):
    """block(M·[norm(hidden) ; norm(embedding)]), equations 21 and 22. `block` is one like the model's own."""

    def __init__(self, spec: Decoder, block: nn.Module, std: float) -> None:
        super().__init__()
        norm, eps = NORMS[spec.norm], float(spec.norm_eps)
        self.embedding_norm = norm(spec.dim, eps)
        self.hidden_norm = norm(spec.dim, eps)
        self.projection = Linear(2 * spec.dim, spec.dim, False, std)
        self.block = block
        self.norm = norm(spec.dim, eps)

    def forward(self, hidden_BSD: Tensor, embedded_BSD: Tensor, context: Any) -> Further:
        """Hidden states of this rank's positions, and embeddings of the tokens k later; `context` is its block's.

        The first module gets the hidden states before the model's last norm.
        """
        joined_BSE = torch.cat([self.hidden_norm(hidden_BSD), self.embedding_norm(embedded_BSD)], -1)
        hidden_BSD, _, routing = self.block(self.projection(joined_BSE), context)
        return Further(hidden_BSD, self.norm(hidden_BSD), routing)


def later_tokens(tokens_BS: Tensor, distance: int) -> Tensor:
    """The token `distance` later, for each of a whole sequence; behind its end, where no label counts, token 0."""
    return _shifted(tokens_BS, distance, 0)


def later_labels(labels_BS: Tensor, documents_BS: Tensor | None, distance: int) -> Tensor:
    """The label `distance` later, not counted where the sequence ends before it or another document has begun."""
    shifted_BS = _shifted(labels_BS, distance, NOT_COUNTED)
    if documents_BS is None:
        return shifted_BS
    return shifted_BS.masked_fill(_shifted(documents_BS, distance, -1) != documents_BS, NOT_COUNTED)


def _shifted(x_BS: Tensor, distance: int, rest: int) -> Tensor:
    filled = torch.full_like(x_BS[:, :distance], rest)
    return torch.cat([x_BS[:, distance:], filled], 1)
