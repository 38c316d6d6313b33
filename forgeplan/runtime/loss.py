"""What is minimised, and over which labels is it summed?"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

from forgeplan.runtime.data.microbatch import NOT_COUNTED, Microbatch
from forgeplan.runtime.executor import Bundle
from forgeplan.runtime.precision import at_least_fp32
from forgeplan.runtime.randomness import Randomness
from forgeplan.runtime.registry import implementation, register
from forgeplan.spec.loss.cross_entropy import CrossEntropy


class LossSums(NamedTuple):
    """Sums over one microbatch's counted labels, in at least fp32; to be divided by the counted labels of the step."""

    loss: Tensor
    """Language-model loss in nats."""
    z: Tensor
    """The z-loss, times its weight."""
    counted: Tensor


def forward_loss(bundle: Bundle, microbatch: Microbatch, randomness: Randomness | None) -> LossSums:
    """Run the model on a microbatch and sum the plan's loss over it. `randomness` is None where dropout is off."""
    tokens, labels, positions, documents = (
        None if t is None else t.to(bundle.device, non_blocking=True)
        for t in (microbatch.tokens_BS, microbatch.labels_BS, microbatch.positions_BS, microbatch.documents_BS)
    )
    logits_BSV = bundle.model(tokens, positions, documents, randomness).logits_BSV
    spec = bundle.plan.job.loss
    return implementation("loss", spec)(spec, logits_BSV, labels)


@register.loss("cross_entropy", spec=CrossEntropy)
def cross_entropy(spec: CrossEntropy, logits_BSV: Tensor, labels_BS: Tensor) -> LossSums:
    """Sums of −log p(label) and of z·log²Z (PaLM, section 5) over labels that are counted; zero where none is."""
    logits_TV, labels_T = at_least_fp32(logits_BSV.flatten(0, 1)), labels_BS.flatten()
    is_counted_T = labels_T != NOT_COUNTED
    loss = F.cross_entropy(logits_TV, labels_T, ignore_index=NOT_COUNTED, reduction="sum")
    z = logits_TV.new_zeros(())
    if spec.z:
        z = float(spec.z) * torch.where(is_counted_T, logits_TV.logsumexp(-1).square(), 0).sum()
    return LossSums(loss, z, is_counted_T.sum())
