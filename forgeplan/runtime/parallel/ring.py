"""How do ranks attend to a whole sequence while each holds keys of one part of it at a time?

Ring attention (Liu et al., 2023). Keys and values pass from rank to rank until everyone has seen all that causality
lets it see; the next are under way while the present ones are used. In backward they pass once more, and with them
their gradients, which are complete when they come home. Nothing that is under way leaves a function of this file.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import torch
from torch import Tensor

from forgeplan.runtime.parallel.axes import ContextParallel
from forgeplan.runtime.parallel.block_attention import Kernel, kernel_for
from forgeplan.runtime.parallel.collectives import Group
from forgeplan.runtime.precision import at_least_fp32_dtype

# B batch, H heads, K kv heads, S positions of a rank, d head width

_ops = torch.ops._c10d_functional


class Part(NamedTuple):
    """Queries of this rank and keys of another between which everything is visible, or what is causal."""

    # A compiled block can make named tuples, but no frozen classes with slots.

    queries: slice = slice(None)
    keys: slice = slice(None)
    causal: bool = False


def visible_part(cp: ContextParallel, source: int, length: int) -> Part | None:
    """What this rank's queries see of the keys of rank `source`, each holding `length` positions.

    With an early and a late part on each rank, late queries see all early keys, early queries no late keys, and
    between parts of a kind the rank decides.
    """
    own = cp.group.index
    if source == own:
        return Part(causal=True)
    if cp.balance == "none":
        return Part() if source < own else None
    half = length // 2
    return Part(keys=slice(half)) if source < own else Part(queries=slice(half, None))


def ring_attention(
    q_BHSd: Tensor, k_BKSd: Tensor, v_BKSd: Tensor, cp: ContextParallel, *, fused: bool = True
) -> Tensor:
    """softmax(q·kᵀ / √d, causal)·v over the sequence of all ranks of `cp`: this rank's positions, (B, H, S, d)."""
    return _Ring.apply(q_BHSd, torch.stack([k_BKSd, v_BKSd]), cp, kernel_for(q_BHSd, fused))


class _Ring(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, q_BHSd: Tensor, kv_2BKSd: Tensor, cp: ContextParallel, kernel: Kernel) -> Tensor:
        ctx.cp, ctx.kernel = cp, kernel
        out = torch.zeros_like(q_BHSd, dtype=at_least_fp32_dtype(q_BHSd.dtype))
        logsumexp_BHS = torch.full_like(out[..., 0], -torch.inf)
        for part, held in _visits(kv_2BKSd, cp):
            if part is not None:
                more = kernel.forward(q_BHSd[:, :, part.queries], *_heads(held, part, q_BHSd), part.causal)
                _merge(out[:, :, part.queries], logsumexp_BHS[:, :, part.queries], *more)
            else:
                out += _nothing(held, out.dtype)
        # What backward takes is what was returned, rounded.
        out = out.to(q_BHSd.dtype)
        ctx.save_for_backward(q_BHSd, kv_2BKSd, out, logsumexp_BHS)
        return out

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> tuple[Tensor, Tensor, None, None]:
        q_BHSd, kv_2BKSd, out, logsumexp_BHS = ctx.saved_tensors
        sums = at_least_fp32_dtype(q_BHSd.dtype)
        of_queries = torch.zeros_like(q_BHSd, dtype=sums)
        coming = None
        for part, held in _visits(kv_2BKSd, ctx.cp):
            found = None
            if part is not None:
                gradient, q, own, total = (x[:, :, part.queries] for x in (gradients[0], q_BHSd, out, logsumexp_BHS))
                found = ctx.kernel.backward(gradient, q, *_heads(held, part, q_BHSd), own, total, part.causal)
            # What other ranks made of the keys at hand has been on its way while this was computed.
            of_held = torch.zeros_like(held, dtype=sums) if coming is None else _ops.wait_tensor(coming)
            if part is not None and found is not None:
                of_queries[:, :, part.queries] += found[0]
                of_held[:, :, :, part.keys] += _shared(found[1:], held.shape[2], sums)
            else:
                of_held = of_held + _nothing(held, sums)
            coming = _passed_on(of_held, ctx.cp.group)
        return of_queries.to(q_BHSd.dtype), _ops.wait_tensor(coming).to(kv_2BKSd.dtype), None, None


def _visits(held: Tensor, cp: ContextParallel) -> Iterator[tuple[Part | None, Tensor]]:
    """Keys and values of every rank, this one's first, then of those before it; with what is visible of them."""
    size, own = cp.group.size, cp.group.index
    for step in range(size):
        coming = _passed_on(held, cp.group) if step + 1 < size else None
        yield visible_part(cp, (own - step) % size, held.shape[3]), held
        if coming is not None:
            held = _ops.wait_tensor(coming)


def _passed_on(x: Tensor, group: Group) -> Tensor:
    """What the rank before holds, under way; x goes to the rank behind. Ends where `wait_tensor` is called."""
    rows, size = x.shape[0], group.size
    sent, received = [0] * size, [0] * size
    sent[(group.index + 1) % size] = received[(group.index - 1) % size] = rows
    return _ops.all_to_all_single(x.contiguous(), received, sent, group.name)


def _nothing(held: Tensor, dtype: torch.dtype) -> Tensor:
    """Zero, which takes `held` to compute.

    A compiled graph has no room for what nobody uses: a rank that sees nothing of the keys it receives would not take
    part in their exchange, and those that do would wait for it for ever.
    """
    return held.reshape(-1)[:1].isfinite().to(dtype).clamp(max=0)


def _heads(kv_2BKSd: Tensor, part: Part, q_BHSd: Tensor) -> tuple[Tensor, Tensor]:
    """Visible keys and values, repeated for each query head: they pass round once for all that share them."""
    keys, values = kv_2BKSd[:, :, :, part.keys].repeat_interleave(q_BHSd.shape[1] // kv_2BKSd.shape[2], dim=2)
    return keys, values


def _shared(gradients_BHSd: tuple[Tensor, ...], num_kv_heads: int, dtype: torch.dtype) -> Tensor:
    """Gradients of repeated keys and values summed over the query heads that share them: (2, B, K, S, d)."""
    whole = torch.stack(gradients_BHSd).to(dtype)
    return whole.unflatten(2, (num_kv_heads, -1)).sum(3)


def _merge(out: Tensor, logsumexp_BHS: Tensor, more: Tensor, more_logsumexp_BHS: Tensor) -> None:
    """Weigh two outputs by the sums of exponentials that they were divided by; in place."""
    both_BHS = torch.logaddexp(logsumexp_BHS, more_logsumexp_BHS)
    out.mul_((logsumexp_BHS - both_BHS).exp()[..., None])
    out.add_(more * (more_logsumexp_BHS - both_BHS).exp()[..., None])
    logsumexp_BHS.copy_(both_BHS)
