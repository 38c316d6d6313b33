"""How do tokens look at one another?"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any, cast

import torch
from torch import Tensor
from torch.nn import functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

from forgeplan.runtime.model.cache import KeyValues
from forgeplan.runtime.model.linear import Linear
from forgeplan.runtime.model.mask import Mask, compiled_flex
from forgeplan.runtime.model.module import Module
from forgeplan.runtime.model.norm import NORMS
from forgeplan.runtime.model.rope import Rotation, rotate
from forgeplan.runtime.parallel.axes import ContextParallel
from forgeplan.runtime.parallel.ring import ring_attention
from forgeplan.runtime.precision import at_least_fp32
from forgeplan.spec.model.decoder import Decoder

# B batch, S queries, T keys, D model width, H heads, K kv heads, d head width

BACKENDS = {
    "flash": SDPBackend.FLASH_ATTENTION,
    "efficient": SDPBackend.EFFICIENT_ATTENTION,
    "cudnn": SDPBackend.CUDNN_ATTENTION,
    "math": SDPBackend.MATH,
}


class Attention(Module):
    """Grouped-query attention (Ainslie et al., 2023) with rotary positions and optional norms of queries and keys."""

    def __init__(self, spec: Decoder, std: float, residual_std: float) -> None:
        super().__init__()
        self.spec = spec
        queries, keys = spec.heads * spec.head_dim, spec.kv_heads * spec.head_dim
        self.wq = Linear(spec.dim, queries, spec.bias, std)
        self.wk = Linear(spec.dim, keys, spec.bias, std)
        self.wv = Linear(spec.dim, keys, spec.bias, std)
        norm, eps = NORMS[spec.norm], float(spec.norm_eps)
        self.q_norm = norm(spec.head_dim, eps) if spec.qk_norm else None
        self.k_norm = norm(spec.head_dim, eps) if spec.qk_norm else None
        self.wo = Linear(queries, spec.dim, spec.bias, residual_std, is_row=True)

    def forward(
        self, x_BSD: Tensor, rotation: Rotation, mask: Mask, cached: KeyValues | None = None
    ) -> tuple[Tensor, KeyValues | None]:
        """Output (B, S, D) and, if `cached` is given, it grown by the new keys and values.

        Under tp a rank has its run of heads; under cp it has its places of the sequence, and sees the keys of all.
        """
        x_BSD = self.axes.tp.enter(x_BSD)
        heads = (*x_BSD.shape[:2], -1, self.spec.head_dim)
        q = self.wq(x_BSD).view(heads)
        k, v = (self._own_heads(w(x_BSD).view(heads)) for w in (self.wk, self.wv))
        if self.q_norm is not None and self.k_norm is not None:
            q, k = self.q_norm(q), self.k_norm(k)
        q, k = rotate(q, rotation), rotate(k, rotation)
        if cached is not None:
            k, v = cached.extended(k, v)
        if mask.kernel != "ring":
            k, v = self.axes.cp.gather(k, v)
        out = self.wo(attend(self.spec, q, k, v, mask).flatten(2))
        return self.axes.tp.leave(out), None if cached is None else KeyValues(k, v)

    def _own_heads(self, x_BSKd: Tensor) -> Tensor:
        """Of key or value heads that every tp rank computes, as there are fewer than ranks, the one it needs."""
        tp, heads = self.axes.tp.group, self.spec.kv_heads
        if tp.size == 1 or x_BSKd.shape[2] < heads:
            return x_BSKd
        own = tp.index * heads // tp.size
        return x_BSKd[:, :, own : own + 1]


def attend(spec: Decoder, q_BSHd: Tensor, k_BTKd: Tensor, v_BTKd: Tensor, mask: Mask) -> Tensor:
    """softmax(q·kᵀ / √d, capped, masked)·v, as (B, S, H, d), by the kernel that the mask was built for."""
    if mask.kernel == "varlen":
        return _varlen(spec, q_BSHd, k_BTKd, v_BTKd, mask)
    kernel = {"sdpa": _sdpa, "scores": _scores, "flex": _flex, "ring": _ring}[mask.kernel]
    q, k, v = (x.transpose(1, 2) for x in (q_BSHd, k_BTKd, v_BTKd))
    return kernel(spec, q, k, v, mask).transpose(1, 2)


def _sdpa(spec: Decoder, q: Tensor, k: Tensor, v: Tensor, mask: Mask) -> Tensor:
    visible = None if mask.visible_BST is None else mask.visible_BST[:, None]
    if q.device.type != "cpu" and (visible is not None or spec.attention == "efficient"):
        # The kernel that takes a mask on a GPU does not share kv heads.
        k, v = _for_each_head(q, k, v)
    with _backend(spec, q.device, visible is not None):
        return F.scaled_dot_product_attention(
            q, k, v, attn_mask=visible, is_causal=mask.causal, enable_gqa=k.shape[1] != q.shape[1]
        )


def _backend(spec: Decoder, device: torch.device, masked: bool) -> AbstractContextManager[None]:
    """A CPU has one fused kernel, which stands in for all of a GPU's; a mask rules the flash kernel out."""
    named = BACKENDS.get(spec.attention)
    if named is None or (device.type == "cpu" and spec.attention != "math") or (masked and spec.attention == "flash"):
        return nullcontext()
    return sdpa_kernel(named)


def _scores(spec: Decoder, q: Tensor, k: Tensor, v: Tensor, mask: Mask) -> Tensor:
    """The definition, step by step: for a soft cap where no fused kernel has one."""
    k, v = _for_each_head(q, k, v)
    scores_BHST = at_least_fp32(q @ k.transpose(-1, -2)) * spec.head_dim**-0.5
    if spec.softcap is not None:
        scores_BHST = _cap(scores_BHST, float(spec.softcap))
    visible = mask.visible_BST[:, None] if mask.visible_BST is not None else None
    if mask.causal:
        visible = torch.ones(scores_BHST.shape[-2:], dtype=torch.bool, device=q.device).tril()[None, None]
    if visible is None:
        return scores_BHST.softmax(-1).to(v.dtype) @ v
    # The least finite number instead of −inf: a row that sees nothing stays finite, and is then set to zero.
    weights = scores_BHST.masked_fill(~visible, torch.finfo(scores_BHST.dtype).min).softmax(-1)
    return (weights * visible.any(-1, keepdim=True)).to(v.dtype) @ v


def _flex(spec: Decoder, q: Tensor, k: Tensor, v: Tensor, mask: Mask) -> Tensor:
    softcap = None if spec.softcap is None else float(spec.softcap)

    def capped(score: Tensor, b: Tensor, h: Tensor, query: Tensor, key: Tensor) -> Tensor:
        return score if softcap is None else _cap(score, softcap)

    return compiled_flex(q.device.type)(
        q, k, v, score_mod=None if softcap is None else capped, block_mask=mask.blocks, enable_gqa=True
    )


def _ring(spec: Decoder, q: Tensor, k: Tensor, v: Tensor, mask: Mask) -> Tensor:
    return ring_attention(q, k, v, cast("ContextParallel", mask.ring), fused=spec.attention != "math")


def _varlen(spec: Decoder, q: Tensor, k: Tensor, v: Tensor, mask: Mask) -> Tensor:
    from torch.nn.attention.varlen import varlen_attn

    length = q.shape[1]
    left = -1 if spec.window is None else spec.window - 1
    q_flat, k_flat, v_flat = (x.flatten(0, 1) for x in (q, k, v))
    out: Any = varlen_attn(
        q_flat,
        k_flat,
        v_flat,
        cast("Tensor", mask.starts),
        mask.starts,
        length,
        length,
        window_size=(left, 0),
        enable_gqa=k.shape[2] != q.shape[2],
    )
    return out.view(q.shape)


def _cap(scores: Tensor, cap: float) -> Tensor:
    """Gemma 2's soft cap."""
    return cap * torch.tanh(scores / cap)


def _for_each_head(q_BHSd: Tensor, *tensors_BKTd: Tensor) -> list[Tensor]:
    """Keys or values repeated so that every query head has its own copy."""
    return [x.repeat_interleave(q_BHSd.shape[1] // x.shape[1], dim=1) for x in tensors_BKTd]
