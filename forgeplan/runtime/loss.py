"""What is minimised, and over which labels is it summed?"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

from forgeplan.runtime.data.microbatch import NOT_COUNTED, Microbatch
from forgeplan.runtime.executor import Bundle
from forgeplan.runtime.model.mtp import later_labels
from forgeplan.runtime.parallel.collectives import Group, all_reduced, summed
from forgeplan.runtime.precision import at_least_fp32
from forgeplan.runtime.randomness import Randomness
from forgeplan.runtime.registry import implementation, register
from forgeplan.spec.loss.cross_entropy import CrossEntropy

# B batch, S positions of this rank, T = B·S, V logits of this rank


class Columns(NamedTuple):
    """Which logits a rank has: those of the token ids from `first` on; the others are on the ranks of `group`."""

    first: int = 0
    group: Group = Group()


ALL = Columns()


class LossSums(NamedTuple):
    """Sums over one microbatch's counted labels, in at least fp32; to be divided by the counted labels of the step."""

    loss: Tensor
    """Language-model loss in nats."""
    z: Tensor
    """The z-loss, times its weight."""
    mtp: Tensor
    """The mean loss of the multi-token prediction modules, times its weight."""
    counted: Tensor
    routing: dict[str, Any] = {}  # noqa: RUF012 (never written to)
    """What the routers did, by layer. Their losses are of the microbatch, not of its labels."""

    def objective(self, counted: Tensor, num_microbatches: int) -> Tensor:
        """What this microbatch adds to the loss of its step, which has so many counted labels and microbatches."""
        total = (self.loss + self.z + self.mtp) / counted
        for routing in self.routing.values():
            total = total + (routing.balance + routing.sequence_balance + routing.z) / num_microbatches
        return total


def forward_loss(bundle: Bundle, microbatch: Microbatch, randomness: Randomness | None) -> LossSums:
    """Run the model on a microbatch and sum the plan's loss over it. `randomness` is None where dropout is off."""
    tokens, labels = (t.to(bundle.device, non_blocking=True) for t in (microbatch.tokens_BS, microbatch.labels_BS))
    positions, documents = (
        None if t is None else t.to(bundle.device, non_blocking=True)
        for t in (microbatch.positions_BS, microbatch.documents_BS)
    )
    spec = bundle.plan.job.loss
    further = bool(spec.mtp) and torch.is_grad_enabled()
    output = bundle.model(tokens, positions, documents, randomness, further=further)
    found = loss_of(bundle, output.logits_BSV, labels)
    mtp = found.mtp
    for distance, logits_BSV in enumerate(output.further_BSV, 1):
        later = loss_of(bundle, logits_BSV, later_labels(labels, documents, distance))
        mtp = mtp + later.loss * (float(spec.mtp) / len(output.further_BSV))
    return found._replace(mtp=mtp, routing=output.routing)


def loss_of(bundle: Bundle, logits_BSV: Tensor, labels_BS: Tensor) -> LossSums:
    """The plan's loss of a rank's logits; the labels are those of whole sequences."""
    spec, tp = bundle.plan.job.loss, bundle.axes.tp.group
    columns = Columns(tp.index * (bundle.plan.job.model.pad_vocab // tp.size), tp)
    compute = bundle.loss or implementation("loss", spec)
    found: LossSums = compute(spec, logits_BSV, bundle.axes.cp.own(labels_BS), columns)
    return found


@register.loss("cross_entropy", spec=CrossEntropy)
def cross_entropy(
    spec: CrossEntropy,
    logits_BSV: Tensor,
    labels_BS: Tensor,
    columns: Columns = ALL,
) -> LossSums:
    """Sums of −log p(label) and of z·log²Z (PaLM, section 5) over labels that are counted; zero where none is."""
    logits_TV, labels_T = at_least_fp32(logits_BSV.flatten(0, 1)), labels_BS.flatten()
    is_counted_T = labels_T != NOT_COUNTED
    if columns.group.size > 1:
        partition_T = log_partition(logits_TV, columns.group)
        surprise_T = partition_T - _logit_of(labels_T, logits_TV, columns)
        loss = torch.where(is_counted_T, surprise_T, 0).sum()
    else:
        loss = F.cross_entropy(logits_TV, labels_T, ignore_index=NOT_COUNTED, reduction="sum")
        partition_T = logits_TV.logsumexp(-1) if spec.z else loss
    none = logits_TV.new_zeros(())
    z = float(spec.z) * torch.where(is_counted_T, partition_T.square(), 0).sum() if spec.z else none
    return LossSums(loss, z, none, is_counted_T.sum())


def log_partition(logits_TV: Tensor, group: Group) -> Tensor:
    """log Σ exp over the logits of all ranks; a rank may have none."""
    none_T1 = logits_TV.new_full((logits_TV.shape[0], 1), -torch.inf)
    peak_T = all_reduced(torch.cat([logits_TV.detach(), none_T1], 1).amax(-1), group, "max")
    return summed((logits_TV - peak_T[:, None]).exp().sum(-1), group).log() + peak_T


def _logit_of(labels_T: Tensor, logits_TV: Tensor, columns: Columns) -> Tensor:
    """The logit of each label, from the rank that has it."""
    own_T = labels_T - columns.first
    is_here_T = (own_T >= 0) & (own_T < logits_TV.shape[1])
    padded_TV = F.pad(logits_TV, (0, 1))
    found_T = padded_TV.gather(1, own_T.where(is_here_T, logits_TV.shape[1])[:, None])[:, 0]
    return summed(found_T, columns.group)
