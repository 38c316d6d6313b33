"""What do the tests of pipelines run on every rank?"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from attrs import evolve
from torch import Tensor, distributed

from forgeplan.plan.execution_plan import ExecutionPlan
from forgeplan.runtime.checkpoint.load import load_state, load_tensors
from forgeplan.runtime.checkpoint.save import Saver
from forgeplan.runtime.data.microbatch import NOT_COUNTED, Microbatch
from forgeplan.runtime.evaluate import evaluate
from forgeplan.runtime.executor import Bundle, build, named_tensors, named_views
from forgeplan.runtime.init import initialise
from forgeplan.runtime.optim.optimizer import build_optimizer
from forgeplan.runtime.parallel.placed import local
from forgeplan.runtime.ranks import Ranks
from forgeplan.runtime.selftest.executed import of_all_stages, whole
from forgeplan.runtime.state import TrainState
from forgeplan.runtime.train import train
from tests.runtime.tiny import Quiet, TinyData

CPU = torch.device("cpu")


def held(plan: ExecutionPlan) -> tuple[list[str], list[list[str]]]:
    """Names of this rank's parameters, and of those of each of its stages."""
    bundle = build(plan, CPU)
    return list(_names(bundle.model)), [list(_names(stage)) for stage in bundle.stages]


def _names(module: torch.nn.Module) -> list[str]:
    return [name for name, _ in module.named_parameters()]


def fill_with_nan_then_initialise(plan: ExecutionPlan) -> dict[str, Tensor]:
    bundle = build(plan, CPU)
    for tensor in (*bundle.model.parameters(), *bundle.model.buffers()):
        local(tensor).fill_(float("nan"))
    initialise(bundle.model, plan.job.seed, bundle.placed)
    return of_all_stages(bundle, whole(named_views(bundle)))


class NanLoss(TinyData):
    """Data with which the logits, on the ranks that have them, are NaN at one step."""

    def __init__(self, plan: ExecutionPlan, bundle: Bundle, at: int) -> None:
        super().__init__(plan, bundle.meshes.data_rank)
        self.step, self.at = 0, at
        if bundle.model.head is not None:
            bundle.model.head.register_forward_hook(self.poison)

    def microbatches(self, first_sample: int) -> list[Microbatch]:
        self.step += 1
        return super().microbatches(first_sample)

    def poison(self, module: Any, inputs: Any, output: Tensor) -> Tensor | None:
        return output * float("nan") if self.step == self.at else None


def train_with_nan_in_the_last_stage(plan: ExecutionPlan, at: int) -> Any:
    bundle = build(plan, CPU)
    state, services = TrainState(), Quiet()
    train(plan, bundle, build_optimizer(bundle), NanLoss(plan, bundle, at), state, services)
    weights = of_all_stages(bundle, whole(named_views(bundle)))
    return weights, state.skipped, state.samples, [r.skipped for r in services.reports]


def evaluate_before_and_after_training(plan: ExecutionPlan, num_microbatches: int, packed: bool) -> list[Any]:
    """Losses and counts of the same microbatches, each data rank with its own."""
    bundle = build(plan, CPU)
    data = TinyData(plan, bundle.meshes.data_rank, packed)
    firsts = range(bundle.meshes.data_rank, num_microbatches * plan.mesh.data_ranks, plan.mesh.data_ranks)
    held_out = [data.microbatch(1000 + 2 * first) for first in firsts]
    reports = [evaluate("held_out", bundle, held_out, 0)]
    train(plan, bundle, build_optimizer(bundle), data, TrainState(), Quiet())
    reports.append(evaluate("held_out", bundle, held_out, plan.steps or 0))
    return [(report.loss, report.counted) for report in reports]


def loss_of_second_documents(plan: ExecutionPlan, altered: bool) -> Any:
    """Of two packed documents only the second is counted; `altered` draws other tokens for the first."""
    bundle = build(plan, CPU)
    microbatch = TinyData(plan, packed=True).microbatch(0)
    first = microbatch.documents_BS == 0
    tokens = microbatch.tokens_BS.where(~first, (microbatch.tokens_BS + 1 + altered) % plan.job.model.vocab)
    counted = evolve(microbatch, tokens_BS=tokens, labels_BS=microbatch.labels_BS.masked_fill(first, NOT_COUNTED))
    return evaluate("held_out", bundle, [counted], 0).loss


def train_and_save(plan: ExecutionPlan, folder: str, at: int) -> dict[str, Tensor]:
    """Stop after step `at`, save, and return the whole state."""
    bundle = build(plan, CPU)
    optimizer, state = build_optimizer(bundle), TrainState()
    train(plan, bundle, optimizer, TinyData(plan, bundle.meshes.data_rank), state, Quiet(stop_after=at))
    tensors = named_tensors(bundle, optimizer)
    Saver(Path(folder), b"{}\n", {}, None, _ranks()).save(tensors, state)
    return of_all_stages(bundle, whole(tensors))


def resume(plan: ExecutionPlan, checkpoint: str) -> tuple[dict[str, Tensor], list[tuple[float, float]]]:
    """The whole state as it was loaded, and losses and norms of the steps that were left."""
    bundle = build(plan, CPU)
    optimizer, services, path = build_optimizer(bundle), Quiet(), Path(checkpoint)
    tensors = named_tensors(bundle, optimizer)
    load_tensors(path, tensors, _ranks())
    loaded = of_all_stages(bundle, whole(tensors))
    data = TinyData(plan, bundle.meshes.data_rank)
    train(plan, bundle, optimizer, data, load_state(path), services)
    return loaded, [(r.loss, r.grad_norm) for r in services.reports]


def refused_checkpoint(plan: ExecutionPlan, checkpoint: str) -> str:
    bundle = build(plan, CPU)
    try:
        load_tensors(Path(checkpoint), named_tensors(bundle, build_optimizer(bundle)), _ranks())
    except Exception as error:
        return str(error)
    return "not refused"


def _ranks() -> Ranks:
    if not distributed.is_initialized():
        return Ranks()
    return Ranks(distributed.get_rank(), distributed.get_world_size())
