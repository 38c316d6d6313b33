"""What does one process train, in a loop that shares no code with the executor?

The model's modules, torch's optimizer and loss, schedules written out again. No program, no FSDP, no groups.
"""

from __future__ import annotations

from math import cos, pi, sqrt
from typing import Any

import torch
from attrs import frozen
from torch import Tensor, nn
from torch.nn import functional as F

from forgeplan.plan.execution_plan import ExecutionPlan
from forgeplan.runtime.data.microbatch import Microbatch
from forgeplan.runtime.init import initialise
from forgeplan.runtime.model.decoder import Transformer
from forgeplan.runtime.randomness import Randomness
from tests.runtime.tiny import TinyData

DTYPES = {"fp64": torch.float64, "fp32": torch.float32}


@frozen
class Trained:
    """What a run is compared by. Gradients are those of the first step, after clipping."""

    losses: list[float]
    norms: list[float]
    rates: list[float]
    gradients: dict[str, Tensor]
    initial: dict[str, Tensor]
    weights: dict[str, Tensor]


def train_reference(plan: ExecutionPlan, packed: bool, left_out: frozenset[int] | set[int] = frozenset()) -> Trained:
    """All sequences of a step as microbatches of `batch.micro`, in their order, on one process.

    Steps in `left_out` (counted from 1) do not happen; the others keep their own batch and rate.
    """
    job, sequences = plan.job, int(plan.job.batch.global_.amount)
    model = Transformer(job.model).to(DTYPES[job.precision.params])
    initialise(model, job.seed)
    initial = state_of(model)
    no_decay = [p for name, p in model.named_parameters() if p.dim() == 1 or name == "embedding.weight"]
    decay = [p for name, p in model.named_parameters() if not (p.dim() == 1 or name == "embedding.weight")]
    spec = job.optimizer
    optimizer = torch.optim.AdamW(
        [{"params": decay, "weight_decay": float(spec.weight_decay)}, {"params": no_decay, "weight_decay": 0.0}],
        betas=(float(spec.betas[0]), float(spec.betas[1])),
        eps=float(spec.eps),
    )
    data = TinyData(plan, packed=packed)
    losses, norms, rates, gradients = [], [], [], {}
    for step in (step for step in range(plan.steps or 0) if step + 1 not in left_out):
        firsts = range(step * sequences, (step + 1) * sequences, job.batch.micro)
        batches = [data.microbatch(first) for first in firsts]
        num_counted = sum(int((b.labels_BS != -100).sum()) for b in batches)
        optimizer.zero_grad()
        loss, loads = 0.0, dict[str, Tensor]()
        for batch in batches:
            random = Randomness(job.seed, batch.sample)
            output = model(batch.tokens_BS, batch.positions_BS, batch.documents_BS, random, further=True)
            logits = output.logits_BSV
            part = F.cross_entropy(logits.flatten(0, 1), batch.labels_BS.flatten(), reduction="sum") / num_counted
            log_partition = logits.logsumexp(-1)[batch.labels_BS != -100]
            total = part + float(job.loss.z) * log_partition.square().sum() / num_counted
            for ahead, further in enumerate(output.further_BSV, 1):
                labels = labels_ahead(batch, ahead)
                later = F.cross_entropy(further.flatten(0, 1), labels.flatten(), reduction="sum") / num_counted
                total = total + float(job.loss.mtp) * later / len(output.further_BSV)
            for block, routing in output.routing.items():
                total = total + (routing.balance + routing.sequence_balance + routing.z) / len(batches)
                loads[block] = loads.get(block, 0) + routing.counts_E
            total.backward()
            loss += part.item()
        norms.append(float(torch.nn.utils.clip_grad_norm_(model.parameters(), float(job.guard.clip or "inf"))))
        losses.append(loss)
        rates.append(float(spec.lr) * factor(job.schedule, step + 1, plan.steps))
        gradients = gradients or {name: p.grad.clone() for name, p in model.named_parameters()}
        for group in optimizer.param_groups:
            group["lr"] = rates[-1]
        optimizer.step()
        move_biases(model, loads)
    return Trained(losses, norms, rates, gradients, initial, state_of(model))


def state_of(model: nn.Module) -> dict[str, Tensor]:
    """Copies of all parameters and buffers."""
    return {name: t.detach().clone() for name, t in (*model.named_parameters(), *model.named_buffers())}


def labels_ahead(batch: Microbatch, ahead: int) -> Tensor:
    """One by one: the label so much later, if it is of the same document."""
    labels = torch.full_like(batch.labels_BS, -100)
    for row in range(labels.shape[0]):
        for at in range(labels.shape[1] - ahead):
            documents = batch.documents_BS
            if documents is None or documents[row, at] == documents[row, at + ahead]:
                labels[row, at] = batch.labels_BS[row, at + ahead]
    return labels


@torch.no_grad()
def move_biases(model: Any, loads: dict[str, Tensor]) -> None:
    """DeepSeek-V3's balancing without a loss, at a constant rate."""
    for block, load in loads.items():
        moe = model.get_submodule(f"{block}.moe")
        if moe.router.bias is not None:
            moe.router.bias += float(moe.spec.router.rate) * torch.sign(load.double().mean() - load)
            moe.router.bias -= moe.router.bias.mean()


def factor(schedule: Any, update: int, total: int | None) -> float:
    """Formulas of the six schedules; every part is given in steps."""
    if schedule is None:
        return 1.0
    kind, warmup = schedule.tag, int(schedule.warmup.amount)
    if update < warmup:
        return update / warmup
    if kind == "constant":
        return 1.0
    shape, floor = schedule.shape if kind == "wsd" else kind, float(schedule.floor)
    begin = total - int(schedule.decay.amount) if kind == "wsd" else warmup
    p = max(update - begin, 0) / (total - begin)
    decayed = {
        "cosine": (1 + cos(pi * p)) / 2,
        "linear": 1 - p,
        "sqrt": 1 - sqrt(p),
        "rex": (1 - p) / (1 / 2 + (1 - p) / 2),
    }[shape]
    return floor + (1 - floor) * decayed
