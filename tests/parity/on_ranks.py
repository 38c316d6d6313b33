"""What do the tests of this folder run on every rank, besides training a plan?"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import torch
from torch import distributed
from torch.distributed.tensor import DTensor

from forgeplan.plan.execution_plan import ExecutionPlan
from forgeplan.runtime.data.microbatch import NOT_COUNTED, Microbatch
from forgeplan.runtime.evaluate import evaluate
from forgeplan.runtime.executor import Bundle, build, named_tensors, named_views
from forgeplan.runtime.init import initialise
from forgeplan.runtime.optim.optimizer import build_optimizer
from forgeplan.runtime.selftest.executed import whole
from forgeplan.runtime.state import TrainState
from forgeplan.runtime.train import train
from tests.runtime.test_train import Poisoned
from tests.runtime.tiny import Quiet, TinyData

CPU = torch.device("cpu")


def train_with_nan_on_one_rank(plan: ExecutionPlan, at: int) -> Any:
    """A NaN gradient on the last rank only, whose loss stays finite."""
    bundle = build(plan, CPU)
    optimizer, state, services = build_optimizer(bundle), TrainState(), Quiet()
    is_last = bundle.meshes.rank == plan.mesh.world - 1
    data = Poisoned(plan, bundle, *([at] if is_last else []), data_rank=bundle.meshes.data_rank)
    train(plan, bundle, optimizer, data, state, services)
    weights = whole(named_views(bundle))
    return weights, state.skipped, state.samples, [r.skipped for r in services.reports]


def stop_by_signal_on_one_rank(plan: ExecutionPlan, after: int) -> Any:
    bundle = build(plan, CPU)
    state = TrainState()
    services = Quiet(stop_after=after if bundle.meshes.rank == 1 else None)
    data = TinyData(plan, bundle.meshes.data_rank)
    return train(plan, bundle, build_optimizer(bundle), data, state, services).value, state.step, services.saves


def evaluate_unequal_shares(plan: ExecutionPlan) -> float:
    """Three microbatches over two ranks: the last of rank 1 is filled up with one that counts nothing."""
    bundle = build(plan, CPU)
    data, rank = TinyData(plan), bundle.meshes.rank
    shares = [[data.microbatch(0), data.microbatch(2)], [data.microbatch(4), not_counted(data.microbatch(0))]]
    return evaluate("held_out", bundle, shares[rank], step=3).loss


def not_counted(microbatch: Microbatch) -> Microbatch:
    return Microbatch(microbatch.tokens_BS, torch.full_like(microbatch.labels_BS, NOT_COUNTED))


def state_after_training(plan: ExecutionPlan) -> Any:
    """Names, global shapes and dtypes of the state, and its values as whole tensors."""
    bundle = build(plan, CPU)
    optimizer = build_optimizer(bundle)
    train(plan, bundle, optimizer, TinyData(plan, bundle.meshes.data_rank), TrainState(), Quiet())
    return whole(named_tensors(bundle, optimizer))


def fill_with_nan_then_initialise(plan: ExecutionPlan) -> Any:
    bundle = build(plan, CPU)
    with torch.no_grad():
        for p in bundle.model.parameters():
            p.to_local().fill_(float("nan"))
    initialise(bundle.model, plan.job.seed, bundle.placed)
    return whole(named_views(bundle))


def fail_on_one_rank() -> None:
    """One rank raises while the others wait for it."""
    if distributed.get_rank() == 0:
        raise ValueError("a rank fails on purpose")
    distributed.barrier()


def world_size() -> int:
    return distributed.get_world_size()


class Interrupted(Exception):
    """Ends an evaluation in its middle."""


def shards_after_evaluation(plan: ExecutionPlan, interrupted: bool) -> list[str]:
    """Names of parameters that an evaluation left gathered, wholly or in part."""
    bundle = build(plan, CPU)
    data = TinyData(plan, bundle.meshes.data_rank)

    def microbatches() -> Iterator[Microbatch]:
        yield data.microbatch(0)
        if interrupted:
            raise Interrupted

    with suppress(Interrupted):
        evaluate("held_out", bundle, microbatches(), step=0)
    mesh = bundle.meshes.dense["fsdp"]
    return [name for name, p in bundle.model.named_parameters() if not isinstance(p, DTensor) or p.device_mesh != mesh]


def number_of_groups(plan: ExecutionPlan) -> int:
    build(plan, CPU)
    return len(distributed.distributed_c10d._world.pg_map)


class Evaluating(Quiet):
    """Services that evaluate after every step."""

    def __init__(self, bundle: Bundle, data: TinyData) -> None:
        super().__init__()
        self.bundle, self.data = bundle, data

    def evaluate_if_due(self, passage: Any, state: TrainState) -> None:
        evaluate("held_out", self.bundle, [self.data.microbatch(100)], state.step)


def train_between_evaluations(plan: ExecutionPlan) -> Any:
    bundle = build(plan, CPU)
    data = TinyData(plan, bundle.meshes.data_rank)
    services = Evaluating(bundle, data)
    train(plan, bundle, build_optimizer(bundle), data, TrainState(), services)
    return [(r.loss, r.grad_norm) for r in services.reports]
