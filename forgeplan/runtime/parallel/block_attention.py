"""What do queries get from one block of keys, in a form that the results of several blocks can be merged from?

Beside its output, a block gives the logsumexp of its scores. Backward takes output and logsumexp of *all* blocks, as
the weights of one block are exp(scores - logsumexp) only then (FlashAttention-2, Dao, 2023, section 2.3).
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from attrs import frozen
from torch import Tensor

from forgeplan.runtime.precision import at_least_fp32

# B batch, H heads, S queries, T keys, d head width

_aten = torch.ops.aten
HALVES = (torch.bfloat16, torch.float16)
FLASH_HEADS = range(8, 257, 8)
"""Widths that the flash kernel of a GPU takes as they are."""


@frozen
class Kernel:
    """Keys and values have as many heads as queries; causal blocks have as many queries as keys."""

    forward: Callable[[Tensor, Tensor, Tensor, bool], tuple[Tensor, Tensor]]
    """(q, k, v, causal) to output (B, H, S, d) and logsumexp (B, H, S)."""
    backward: Callable[[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, bool], tuple[Tensor, Tensor, Tensor]]
    """(gradient, q, k, v, output, logsumexp, causal) to the gradients of q, k, v."""


def kernel_for(q: Tensor, fused: bool) -> Kernel:
    """The fused kernel of the device where it takes dtype and width of heads; else, or if not `fused`, the definition,
    which holds the scores of a block in memory."""
    if not fused:
        return DEFINITION
    if q.device.type == "cpu":
        return CPU
    takes = q.dtype in HALVES and q.shape[-1] in FLASH_HEADS
    return GPU if q.device.type == "cuda" and takes else DEFINITION


def _scores(q: Tensor, k: Tensor, causal: bool) -> Tensor:
    scores_BHST = at_least_fp32(q) @ at_least_fp32(k).transpose(-1, -2) * q.shape[-1] ** -0.5
    if not causal:
        return scores_BHST
    visible_ST = torch.ones(scores_BHST.shape[-2:], dtype=torch.bool, device=q.device).tril()
    return scores_BHST.masked_fill(~visible_ST, float("-inf"))


def _defined(q: Tensor, k: Tensor, v: Tensor, causal: bool) -> tuple[Tensor, Tensor]:
    scores_BHST = _scores(q, k, causal)
    return scores_BHST.softmax(-1) @ at_least_fp32(v), scores_BHST.logsumexp(-1)


def _defined_backward(
    gradient: Tensor, q: Tensor, k: Tensor, v: Tensor, out: Tensor, logsumexp_BHS: Tensor, causal: bool
) -> tuple[Tensor, Tensor, Tensor]:
    gradient, out, keys, values = (at_least_fp32(x) for x in (gradient, out, k, v))
    weights_BHST = (_scores(q, k, causal) - logsumexp_BHS[..., None]).exp()
    along_BHS1 = (gradient * out).sum(-1, keepdim=True)
    of_scores_BHST = weights_BHST * (gradient @ values.transpose(-1, -2) - along_BHS1) * q.shape[-1] ** -0.5
    of_values = weights_BHST.transpose(-1, -2) @ gradient
    return of_scores_BHST @ keys, of_scores_BHST.transpose(-1, -2) @ at_least_fp32(q), of_values


def _cpu(q: Tensor, k: Tensor, v: Tensor, causal: bool) -> tuple[Tensor, Tensor]:
    return _aten._scaled_dot_product_flash_attention_for_cpu(q, k, v, 0.0, causal)


def _cpu_backward(
    gradient: Tensor, q: Tensor, k: Tensor, v: Tensor, out: Tensor, logsumexp_BHS: Tensor, causal: bool
) -> tuple[Tensor, Tensor, Tensor]:
    return _aten._scaled_dot_product_flash_attention_for_cpu_backward(
        gradient, q, k, v, out, logsumexp_BHS, 0.0, causal
    )


def _gpu(q: Tensor, k: Tensor, v: Tensor, causal: bool) -> tuple[Tensor, Tensor]:
    out, logsumexp_BHS, *_ = _aten._scaled_dot_product_flash_attention(q, k, v, 0.0, causal)
    return out, logsumexp_BHS


def _gpu_backward(
    gradient: Tensor, q: Tensor, k: Tensor, v: Tensor, out: Tensor, logsumexp_BHS: Tensor, causal: bool
) -> tuple[Tensor, Tensor, Tensor]:
    # Without dropout the state of the generator is not read, but it has to be there.
    seed = torch.zeros(2, dtype=torch.uint64, device=q.device)
    offset = torch.zeros((), dtype=torch.uint64, device=q.device)
    lengths = None, None, q.shape[2], k.shape[2]
    return _aten._scaled_dot_product_flash_attention_backward(
        gradient, q, k, v, out, logsumexp_BHS.contiguous(), *lengths, 0.0, causal, seed, offset
    )


DEFINITION = Kernel(_defined, _defined_backward)
CPU = Kernel(_cpu, _cpu_backward)
GPU = Kernel(_gpu, _gpu_backward)
