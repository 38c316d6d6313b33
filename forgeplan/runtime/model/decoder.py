"""What is the decoder, put together?"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from math import sqrt
from typing import NamedTuple

import torch
from torch import Tensor, nn

from forgeplan.diagnostics.refusal import InternalError
from forgeplan.runtime.model.attention import Attention
from forgeplan.runtime.model.cache import NOTHING, Cache, KeyValues
from forgeplan.runtime.model.linear import Embedding, Head
from forgeplan.runtime.model.mask import Mask, build_mask
from forgeplan.runtime.model.mlp import MLP
from forgeplan.runtime.model.module import Module
from forgeplan.runtime.model.moe.layer import MoE, Routing
from forgeplan.runtime.model.mtp import FurtherToken, later_tokens
from forgeplan.runtime.model.norm import NORMS, RMSNorm
from forgeplan.runtime.model.rope import Rotation, rotation
from forgeplan.runtime.randomness import Noise, Randomness
from forgeplan.runtime.registry import register
from forgeplan.spec.model.decoder import Decoder

# B batch, S positions of this rank, T cached and new positions of whole sequences, D model width, V real token ids


class Output(NamedTuple):
    logits_BSV: Tensor
    """Or, of a pipeline stage that is not the last, what the next one goes on from."""
    cache: Cache | None
    """Grown by the tokens just seen, if one was given."""
    routing: dict[str, Routing]
    """What the routers of this microbatch did, by the name of the block."""
    further_BSV: tuple[Tensor, ...] = ()
    """Logits of the token after the next, of the one after that …, if asked for."""


class Block(Module):
    """x + attention(norm(x)), then x + f(norm(x)), f an MLP or a mixture of experts."""

    recompute_unit = True

    def __init__(self, spec: Decoder, number: int) -> None:
        super().__init__()
        self.dropout = float(spec.dropout)
        std = float(spec.init_std)
        residual_std = std / sqrt(2 * spec.layers)
        norm, eps = NORMS[spec.norm], float(spec.norm_eps)
        self.attention_norm = norm(spec.dim, eps)
        self.attention = Attention(spec, std, residual_std)
        self.mlp_norm = norm(spec.dim, eps)
        has_experts = spec.is_moe(number)
        self.mlp = None if has_experts else MLP(spec, std, residual_std)
        self.moe = MoE(spec, std, residual_std) if has_experts else None

    def forward(
        self,
        x_BSD: Tensor,
        context: Context,
        cached: KeyValues | None = None,
    ) -> tuple[Tensor, KeyValues | None, Routing | None]:
        attended, state = self.attention(self.attention_norm(x_BSD), context.rotation, context.mask, cached)
        x_BSD = x_BSD + self._dropped(attended, context.noise, "attention")
        normed_BSD, routing = self.mlp_norm(x_BSD), None
        if self.moe is not None:
            out_BSD, routing = self.moe(normed_BSD, context.places_S)
        else:
            out_BSD = self._dense(normed_BSD)
        return x_BSD + self._dropped(out_BSD, context.noise, "mlp"), state, routing

    def _dense(self, x_BSD: Tensor) -> Tensor:
        if self.mlp is None:
            raise InternalError("a block has neither an MLP nor experts")
        return self.mlp(x_BSD)

    def _dropped(self, x_BSD: Tensor, noise: dict[str, Noise], name: str) -> Tensor:
        return noise[name].dropout(x_BSD, self.dropout) if noise else x_BSD


class Context(NamedTuple):
    """What all blocks of a forward share, but for `noise`."""

    rotation: Rotation
    mask: Mask
    places_S: Tensor
    """Places in the sequence of the positions that this rank holds between attentions."""
    noise: dict[str, Noise] = {}  # noqa: RUF012 (never written to)
    """For the dropout behind each half of one block; empty where nothing is dropped."""


class Transformer(Module):
    """Parameters are named and shaped as `Decoder.parameters()` says; layers are keyed by their global number."""

    def __init__(self, spec: Decoder) -> None:
        super().__init__()
        self.spec = spec
        std = float(spec.init_std)
        self.embedding: Embedding | None = Embedding(spec.pad_vocab, spec.dim, std)
        self.layers = nn.ModuleDict({str(i): Block(spec, i) for i in range(spec.layers)})
        self.mtp = nn.ModuleDict(
            {str(k): FurtherToken(spec, Block(spec, spec.layers + k), std) for k in range(spec.mtp)}
        )
        self.norm: RMSNorm | None = NORMS[spec.norm](spec.dim, float(spec.norm_eps))
        self.head: Head | None = Head(spec.dim, spec.vocab, spec.pad_vocab, std, spec.tie)

    def part(self, layers: Iterable[int], *, embedding: bool, head: bool) -> Transformer:
        """The same modules, but only these layers, and of both ends those asked for: what a pipeline rank holds."""
        # Not a copy, whose hooks would be those of the original too.
        part = Transformer.__new__(Transformer)
        nn.Module.__init__(part)
        part.spec, part.axes = self.spec, self.axes
        part.embedding = self.embedding if embedding else None
        part.layers = nn.ModuleDict({str(i): self.layers[str(i)] for i in layers})
        part.mtp = self.mtp
        part.norm, part.head = (self.norm, self.head) if head else (None, None)
        return part

    def fsdp_units(self) -> list[list[nn.Module]]:
        """Modules that are gathered together, in order of use; what is in none of them belongs to the root.

        A tied table is used at both ends, so it is the root's, and with it the last norm and the head.
        """
        blocks: list[list[nn.Module]] = [[block] for block in (*self.layers.values(), *self.mtp.values())]
        if self.spec.tie:
            return blocks
        first: list[list[nn.Module]] = [] if self.embedding is None else [[self.embedding]]
        last: list[list[nn.Module]] = [] if self.norm is None or self.head is None else [[self.norm, self.head]]
        return [*first, *blocks, *last]

    def set_compute_dtype(self, dtype: torch.dtype) -> None:
        """The dtype of activations; weights are used in it, whatever they are stored in."""
        if self.embedding is not None:
            self.embedding.compute_dtype = dtype

    def forward(
        self,
        tokens_BS: Tensor,
        positions_BS: Tensor | None = None,
        documents_BS: Tensor | None = None,
        randomness: Randomness | None = None,
        cache: Cache | None = None,
        *,
        further: bool = False,
    ) -> Output:
        """Logits of the token after each of `tokens_BS`, or what a pipeline stage makes of the hidden states before it.

        Tokens, positions and documents are those of whole sequences on every rank; a cp rank works on its own places of
        them, and returns the logits of those. Positions default to 0, 1, … (after the cached ones). `documents_BS`
        keeps documents of a row apart; a negative one is padding. `randomness` switches dropout on. With `cache` (start
        with `Cache()`) the tokens continue the cached ones; a prompt may come in any number of pieces. `further` asks
        for the multi-token predictions.
        """
        past = cache or Cache()
        positions_BT, documents_BT = _continued(
            past, tokens_BS.shape[0], self._length(tokens_BS), tokens_BS.device, positions_BS, documents_BS
        )
        distances = range(1, len(self.mtp) + 1 if further else 1)
        x_BSD, *later = self._entered(tokens_BS, distances)
        context = self._context(x_BSD, past, positions_BT, documents_BT, generating=cache is not None)
        noise = partial(self._noise, randomness, context.places_S, x_BSD.shape[0])
        states, routing = {}, {}
        for number, block in self.layers.items():
            cached = None if cache is None else cache.layers.get(number, NOTHING)
            x_BSD, states[number], routed = block(x_BSD, context._replace(noise=noise(int(number))), cached)
            if routed is not None:
                routing[f"layers.{number}"] = routed
        total = max(positions_BT.shape[1], past.total)
        grown = None if cache is None else Cache(total, states, positions_BT, documents_BT)
        if self.norm is None or self.head is None:
            return Output(x_BSD, grown, routing)
        normed = [self.norm(x_BSD)]
        for (k, module), embedded_BSD in zip(self.mtp.items(), later, strict=False):
            own = context._replace(noise=noise(self.spec.layers + int(k)))
            x_BSD, normed_BSD, routed = module(x_BSD, embedded_BSD, own)
            normed.append(normed_BSD)
            if routed is not None:
                routing[f"mtp.{k}.block"] = routed
        tied_VD = self.embedding.weight if self.spec.tie and self.embedding is not None else None
        logits_BSV, *further_BSV = _at_once(partial(self.head, tied_VD=tied_VD), normed)
        return Output(logits_BSV, grown, routing, tuple(further_BSV))

    def _length(self, entering: Tensor) -> int:
        """Positions of the whole sequence, of which a later stage gets this rank's."""
        split = 1 if self.embedding is not None else self.axes.cp.group.size * self.axes.tp.parts
        return entering.shape[1] * split

    def _entered(self, entering: Tensor, distances: Iterable[int]) -> list[Tensor]:
        """What enters the first layer, then embeddings of the tokens so much later; in one lookup."""
        if self.embedding is None:
            return [entering]
        tokens = [self.axes.cp.own(entering), *(later_tokens(entering, distance) for distance in distances)]
        return _at_once(self.embedding, tokens)

    def _context(
        self,
        x_BSD: Tensor,
        past: Cache,
        positions_BT: Tensor,
        documents_BT: Tensor | None,
        *,
        generating: bool,
    ) -> Context:
        cp, tp, device = self.axes.cp, self.axes.tp, x_BSD.device
        length = positions_BT.shape[1] - past.length
        batch = x_BSD.shape[0]
        mask = build_mask(self.spec, length, past.length, documents_BT, batch, device, generating=generating, cp=cp)
        positions_BS = cp.own(positions_BT[:, past.length :])
        total = max(positions_BT.shape[1], past.total)
        tables = rotation(self.spec.rope, self.spec.head_dim, positions_BS, total, x_BSD.dtype)
        places_S = tp.own(cp.own_places(length, device)[None])[0]
        return Context(tables, mask, places_S)

    def _noise(self, randomness: Randomness | None, places_S: Tensor, batch: int, number: int) -> dict[str, Noise]:
        """For dropout in one block, drawn outside of it: nothing in a block depends on which one it is."""
        if randomness is None or not self.spec.dropout:
            return {}
        here = randomness.at(places_S)
        return {half: here.noise(batch, number, half, places_S.device) for half in ("attention", "mlp")}


def _at_once(module: Callable[[Tensor], Tensor], inputs: list[Tensor]) -> list[Tensor]:
    """What the module makes of each input, in one call, for which its weights are gathered once."""
    if len(inputs) == 1:
        return [module(inputs[0])]
    return list(module(torch.cat(inputs)).chunk(len(inputs)))


def _continued(
    past: Cache,
    batch: int,
    length: int,
    device: torch.device,
    positions_BS: Tensor | None,
    documents_BS: Tensor | None,
) -> tuple[Tensor, Tensor | None]:
    """Positions and documents of cached and new tokens together; new tokens after documents belong to document 0."""
    if positions_BS is None:
        positions_BS = torch.arange(past.length, past.length + length, device=device)[None]
    if past.positions_BT is not None:
        rows = max(positions_BS.shape[0], past.positions_BT.shape[0])
        positions_BS = torch.cat([past.positions_BT.expand(rows, -1), positions_BS.expand(rows, -1)], 1)
    if documents_BS is None and past.documents_BT is None:
        return positions_BS, None
    none = torch.zeros(batch, length, dtype=torch.int64, device=device)
    new = none if documents_BS is None else documents_BS
    old = none.new_zeros(batch, past.length) if past.documents_BT is None else past.documents_BT
    return positions_BS, torch.cat([old, new], 1)


@register.model("decoder", spec=Decoder)
def build_decoder(spec: Decoder) -> Transformer:
    return Transformer(spec)
