"""What is the dense decoder, put together?"""

from __future__ import annotations

from math import sqrt
from typing import NamedTuple

import torch
from torch import Tensor, nn

from forgeplan.runtime.model.attention import Attention
from forgeplan.runtime.model.cache import NOTHING, Cache, KeyValues
from forgeplan.runtime.model.linear import Embedding, Head
from forgeplan.runtime.model.mask import Mask, build_mask
from forgeplan.runtime.model.mlp import MLP
from forgeplan.runtime.model.module import Module
from forgeplan.runtime.model.norm import NORMS
from forgeplan.runtime.model.rope import Rotation, rotation
from forgeplan.runtime.randomness import Randomness
from forgeplan.runtime.registry import register
from forgeplan.spec.model.decoder import Decoder

# B batch, S sequence, T cached and new positions, D model width, V vocabulary without padding


class Output(NamedTuple):
    logits_BSV: Tensor
    cache: Cache | None
    """Grown by the tokens just seen, if one was given."""


class Block(Module):
    """x + attention(norm(x)), then x + mlp(norm(x))."""

    recompute_unit = True

    def __init__(self, spec: Decoder, number: int) -> None:
        super().__init__()
        self.number = number
        self.dropout = float(spec.dropout)
        std = float(spec.init_std)
        residual_std = std / sqrt(2 * spec.layers)
        norm, eps = NORMS[spec.norm], float(spec.norm_eps)
        self.attention_norm = norm(spec.dim, eps)
        self.attention = Attention(spec, std, residual_std)
        self.mlp_norm = norm(spec.dim, eps)
        self.mlp = MLP(spec, std, residual_std)

    def forward(
        self,
        x_BSD: Tensor,
        rotation: Rotation,
        mask: Mask,
        randomness: Randomness | None = None,
        cached: KeyValues | None = None,
    ) -> tuple[Tensor, KeyValues | None]:
        attended, state = self.attention(self.attention_norm(x_BSD), rotation, mask, cached)
        x_BSD = x_BSD + self._dropped(attended, randomness, "attention")
        return x_BSD + self._dropped(self.mlp(self.mlp_norm(x_BSD)), randomness, "mlp"), state

    def _dropped(self, x_BSD: Tensor, randomness: Randomness | None, name: str) -> Tensor:
        return x_BSD if randomness is None else randomness.dropout(x_BSD, self.dropout, self.number, name)


class Transformer(Module):
    """Parameters are named and shaped as `Decoder.parameters()` says; layers are keyed by their global number."""

    def __init__(self, spec: Decoder) -> None:
        super().__init__()
        self.spec = spec
        std = float(spec.init_std)
        self.embedding = Embedding(spec.pad_vocab, spec.dim, std)
        self.layers = nn.ModuleDict({str(i): Block(spec, i) for i in range(spec.layers)})
        self.norm = NORMS[spec.norm](spec.dim, float(spec.norm_eps))
        self.head = Head(spec.dim, spec.vocab, spec.pad_vocab, std, spec.tie)

    def fsdp_units(self) -> list[list[nn.Module]]:
        """Modules that are gathered together, in order of use; what is in none of them belongs to the root.

        A tied table is used at both ends, so it is the root's, and with it the last norm and the head.
        """
        blocks: list[list[nn.Module]] = [[block] for block in self.layers.values()]
        return blocks if self.spec.tie else [[self.embedding], *blocks, [self.norm, self.head]]

    def set_compute_dtype(self, dtype: torch.dtype) -> None:
        """The dtype of activations; weights are used in it, whatever they are stored in."""
        self.embedding.compute_dtype = dtype

    def forward(
        self,
        tokens_BS: Tensor,
        positions_BS: Tensor | None = None,
        documents_BS: Tensor | None = None,
        randomness: Randomness | None = None,
        cache: Cache | None = None,
    ) -> Output:
        """Logits of the token after each of `tokens_BS`.

        Positions default to 0, 1, … (after the cached ones). `documents_BS` keeps documents of a row apart; a negative
        one is padding. `randomness` switches dropout on. With `cache` (start with `Cache()`) the tokens continue the
        cached ones; a prompt may come in any number of pieces.
        """
        past = cache or Cache()
        positions_BT, documents_BT = _continued(past, tokens_BS, positions_BS, documents_BS)
        x_BSD = self.embedding(tokens_BS)
        batch, length = tokens_BS.shape
        device, generating = tokens_BS.device, cache is not None
        mask = build_mask(self.spec, length, past.length, documents_BT, batch, device, generating=generating)
        total = max(positions_BT.shape[1], past.total)
        tables = rotation(self.spec.rope, self.spec.head_dim, positions_BT[:, past.length :], total, x_BSD.dtype)
        states = {}
        for number, block in self.layers.items():
            cached = None if cache is None else cache.layers.get(number, NOTHING)
            x_BSD, states[number] = block(x_BSD, tables, mask, randomness, cached)
        tied_VD = self.embedding.weight if self.spec.tie else None
        logits_BSV = self.head(self.norm(x_BSD), tied_VD)
        return Output(logits_BSV, None if cache is None else Cache(total, states, positions_BT, documents_BT))


def _continued(
    past: Cache, tokens_BS: Tensor, positions_BS: Tensor | None, documents_BS: Tensor | None
) -> tuple[Tensor, Tensor | None]:
    """Positions and documents of cached and new tokens together; new tokens after documents belong to document 0."""
    batch, length = tokens_BS.shape
    if positions_BS is None:
        positions_BS = torch.arange(past.length, past.length + length, device=tokens_BS.device)[None]
    if past.positions_BT is not None:
        rows = max(positions_BS.shape[0], past.positions_BT.shape[0])
        positions_BS = torch.cat([past.positions_BT.expand(rows, -1), positions_BS.expand(rows, -1)], 1)
    if documents_BS is None and past.documents_BT is None:
        return positions_BS, None
    new = tokens_BS.new_zeros(batch, length) if documents_BS is None else documents_BS
    old = tokens_BS.new_zeros(batch, past.length) if past.documents_BT is None else past.documents_BT
    return positions_BS, torch.cat([old, new], 1)


@register.model("decoder", spec=Decoder)
def build_decoder(spec: Decoder) -> Transformer:
    return Transformer(spec)
