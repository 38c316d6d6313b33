"""Which keys can a query see, and which kernel can look at them?

A query sees the keys before it and itself, of its own document, within the window. A negative document number is
padding: it sees nothing, nothing sees it, and its output is zero. Built once for a batch and shared by all layers.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import torch
from attrs import frozen
from torch import Tensor

from forgeplan.diagnostics.refusal import InternalError
from forgeplan.runtime.parallel.axes import ALONE, ContextParallel
from forgeplan.spec.model.decoder import Decoder

# B batch, S queries, T keys (cached ones first; under cp in the order in which they are gathered)


@frozen
class Mask:
    """`kernel` is sdpa, scores, flex, varlen or ring. With no field set and `causal` false, everything is visible."""

    kernel: str
    causal: bool = False
    """The plain causal mask, known to kernels without a tensor."""
    visible_BST: Tensor | None = None
    blocks: Any = None
    """FlexAttention's BlockMask."""
    starts: Tensor | None = None
    """Ends of documents in the flattened batch, int32, for varlen."""
    ring: ContextParallel | None = None
    """The ranks that keys and values pass round."""


def build_mask(
    spec: Decoder,
    num_queries: int,
    num_cached: int,
    documents_BT: Tensor | None,
    batch: int,
    device: torch.device,
    *,
    generating: bool = False,
    cp: ContextParallel = ALONE.cp,
) -> Mask:
    """The mask of the last `num_queries` of `num_cached + num_queries` positions; documents cover all of them.

    Under `cp` the queries are those of this rank. Where text is generated (always so with cached positions) every
    prompt has another length: a kernel that is compiled for one length is not used.
    """
    num_keys = num_cached + num_queries
    window = spec.window if spec.window is not None and spec.window < num_keys else None
    special = window is not None or documents_BT is not None
    if cp.group.size > 1 and cp.attention == "ring":
        if special or spec.softcap is not None or num_cached:
            raise InternalError("ring attention got a mask that is not plainly causal, or a soft cap")
        return Mask("ring", causal=True, ring=cp)
    kernel = kernel_for(spec, device.type, special, generating, gathers=cp.group.size > 1)
    if kernel == "varlen":
        return Mask(kernel, starts=_starts(documents_BT, batch, num_keys, device))
    if kernel != "flex" and not special and cp.group.size == 1 and not (num_cached and num_queries > 1):
        return Mask(kernel, causal=num_queries > 1)
    if cp.group.size > 1:
        queries_S, keys_T = cp.own_places(num_keys, device), cp.all_places(num_keys, device)
    else:
        keys_T = torch.arange(num_keys, device=device)
        queries_S = keys_T[num_cached:]
    if kernel == "flex":
        return Mask(kernel, blocks=_blocks(queries_S, keys_T, window, documents_BT))
    return Mask(kernel, visible_BST=_visible(queries_S, keys_T, window, documents_BT))


def kernel_for(spec: Decoder, device_type: str, special: bool, generating: bool, *, gathers: bool = False) -> str:
    """`special` is a mask that is not plainly causal; `gathers`: queries are those of a rank, keys those of all."""
    on_gpu = device_type != "cpu"
    capped = spec.softcap is not None
    if not generating:
        if spec.attention == "flex" or (spec.attention == "auto" and on_gpu and (special or capped or gathers)):
            return "flex"
        if spec.attention == "flash" and on_gpu and special and not capped and not gathers:
            return "varlen"
    return "scores" if capped else "sdpa"


def _visible(queries_S: Tensor, keys_T: Tensor, window: int | None, documents_BT: Tensor | None) -> Tensor:
    """(B or 1, S, T): queries and keys are given by their places; documents lie in the order of places."""
    distance_ST = queries_S[:, None] - keys_T[None, :]
    visible = distance_ST >= 0
    if window is not None:
        visible &= distance_ST < window
    visible = visible[None]
    if documents_BT is not None:
        documents_BS = documents_BT[:, queries_S]
        same = documents_BS[:, :, None] == documents_BT[:, keys_T][:, None, :]
        visible = visible & same & (documents_BS >= 0)[:, :, None]
    return visible


def _blocks(queries_S: Tensor, keys_T: Tensor, window: int | None, documents_BT: Tensor | None) -> Any:
    # Here, as importing FlexAttention takes long, and most programs do without.
    from forgeplan.runtime.model.blocks import block_mask

    def sees(b: Tensor, h: Tensor, query: Tensor, key: Tensor) -> Tensor:
        at, of = queries_S[query], keys_T[key]
        seen = at >= of
        if window is not None:
            seen = seen & (at - of < window)
        if documents_BT is not None:
            seen = seen & (documents_BT[b, at] == documents_BT[b, of]) & (documents_BT[b, at] >= 0)
        return seen

    return block_mask(queries_S, keys_T, window, documents_BT, sees)


def _starts(documents_BT: Tensor | None, batch: int, length: int, device: torch.device) -> Tensor:
    """Offsets at which a document or a row begins, and the end: the bounds that varlen kernels want."""
    begins_BT = torch.zeros(batch, length, dtype=torch.bool, device=device)
    begins_BT[:, 0] = True
    if documents_BT is not None:
        begins_BT[:, 1:] |= documents_BT[:, 1:] != documents_BT[:, :-1]
    offsets = begins_BT.flatten().nonzero().flatten()
    return torch.cat([offsets, offsets.new_tensor([batch * length])]).int()


@cache
def compiled_flex(device_type: str) -> Any:
    """FlexAttention: compiled into one kernel on a GPU; on a CPU the plain (forward only) version."""
    from torch.nn.attention.flex_attention import flex_attention

    return flex_attention if device_type == "cpu" else torch.compile(flex_attention, dynamic=False)
