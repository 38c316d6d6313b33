"""What does one process train, in a loop that shares no code with the executor?

The model's modules, torch's optimizer and loss, schedules written out again. No program, no FSDP, no groups.
"""

from __future__ import annotations

from collections.abc import Collection
from math import cos, nan, pi, sqrt
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
from forgeplan.runtime.selftest.data import TinyData
from forgeplan.spec.plan import Plan

DTYPES = {"fp64": torch.float64, "fp32": torch.float32}
CPU = torch.device("cpu")


@frozen
class Trained:
    """What a run is compared by; all tensors are whole and on the CPU. Gradients are those of the first step, before
    clipping."""

    losses: list[float]
    norms: list[float]
    rates: list[float]
    gradients: dict[str, Tensor]
    initial: dict[str, Tensor]
    weights: dict[str, Tensor]


def train_reference(
    plan: ExecutionPlan, packed: bool, left_out: Collection[int] = (), device: torch.device = CPU
) -> Trained:
    """All sequences of a step as microbatches of `batch.micro`, in their order, on one process.

    Steps in `left_out` (counted from 1) do not happen; the others keep their own batch and rate.
    """
    job, data = plan.job, TinyData(plan, packed=packed)
    model = Transformer(job.model).to(DTYPES[job.precision.params])
    for tensor in (*model.parameters(), *model.buffers()):
        tensor.data.fill_(nan)  # so that what nobody initialises equals nothing
    initialise(model, job.seed)
    model.to(device)
    initial, optimizer = state_of(model), _optimizer(job.optimizer, model)
    losses, norms, rates, gradients = [], [], [], dict[str, Tensor]()
    for step in (step for step in range(plan.steps or 0) if step + 1 not in left_out):
        firsts = range(step * plan.sequences_per_step, (step + 1) * plan.sequences_per_step, job.batch.micro)
        optimizer.zero_grad()
        loss, loads = _backward(model, job, [_on(device, data.microbatch(first)) for first in firsts])
        gradients = gradients or {n: p.grad.cpu().clone() for n, p in model.named_parameters() if p.grad is not None}
        norms.append(float(nn.utils.clip_grad_norm_(model.parameters(), float(job.guard.clip or "inf"))))
        losses.append(loss)
        rates.append(float(job.optimizer.lr) * factor(job.schedule, step + 1, plan.steps or 0))
        for group in optimizer.param_groups:
            group["lr"] = rates[-1]
        optimizer.step()
        move_biases(model, loads, bias_factor(job, step + 1, plan.steps or 0))
    return Trained(losses, norms, rates, gradients, initial, state_of(model))


def state_of(model: nn.Module) -> dict[str, Tensor]:
    """Copies of all parameters and buffers."""
    return {name: t.detach().cpu().clone() for name, t in (*model.named_parameters(), *model.named_buffers())}


def _optimizer(spec: Any, model: nn.Module) -> torch.optim.Optimizer:
    """AdamW; vectors do not decay, nor the embedding unless it is asked for."""
    kept, decay = list[nn.Parameter](), list[nn.Parameter]()
    for name, p in model.named_parameters():
        spared = p.dim() == 1 or (name == "embedding.weight" and not spec.decay_embeddings)
        (kept if spared else decay).append(p)
    return torch.optim.AdamW(
        [{"params": decay, "weight_decay": float(spec.weight_decay)}, {"params": kept, "weight_decay": 0.0}],
        betas=(float(spec.betas[0]), float(spec.betas[1])),
        eps=float(spec.eps),
    )


def _on(device: torch.device, batch: Microbatch) -> Microbatch:
    positions, documents = (None if t is None else t.to(device) for t in (batch.positions_BS, batch.documents_BS))
    return Microbatch(batch.tokens_BS.to(device), batch.labels_BS.to(device), positions, documents, batch.sample)


def _backward(model: nn.Module, job: Plan, batches: list[Microbatch]) -> tuple[float, dict[str, Tensor]]:
    """The loss of the step, and the assignments to experts by block; gradients are added to the model's."""
    num_counted = sum(int((b.labels_BS != -100).sum()) for b in batches)
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
    return loss, loads


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
def move_biases(model: Any, loads: dict[str, Tensor], factor: float = 1.0) -> None:
    """DeepSeek-V3's balancing without a loss, by the factor of its rate."""
    for block, load in loads.items():
        moe = model.get_submodule(f"{block}.moe")
        if moe.router.bias is not None:
            moe.router.bias += factor * float(moe.spec.router.rate) * torch.sign(load.double().mean() - load)
            moe.router.bias -= moe.router.bias.mean()


def bias_factor(job: Plan, update: int, total: int) -> float:
    """Of the rate at which routers are balanced; the warm-up is that of the learning rate, given in steps."""
    kind = getattr(job.model.moe and job.model.moe.router, "rate_schedule", "constant")
    if kind == "cosine":
        return (1 + cos(pi * (update - 1) / (total - 1))) / 2
    warmup = int(job.schedule.warmup.amount) if kind == "warmup" and job.schedule is not None else 0
    return update / warmup if update < warmup else 1.0


def factor(schedule: Any, update: int, total: int) -> float:
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
    return float(floor + (1 - floor) * decayed)
