"""What does every rank of a drawn plan do?"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import distributed

from forgeplan.plan.verify import read
from forgeplan.runtime.checkpoint.load import load_state, load_tensors
from forgeplan.runtime.checkpoint.save import Saver
from forgeplan.runtime.data.train_data import TrainData
from forgeplan.runtime.executor import build, named_tensors, real_rows
from forgeplan.runtime.optim.optimizer import build_optimizer
from forgeplan.runtime.ranks import Ranks
from forgeplan.runtime.state import TrainState
from forgeplan.runtime.train import train
from tests.runtime.tiny import Quiet

CPU = torch.device("cpu")


class Saving(Quiet):
    """Services that save once, after `at` steps."""

    def __init__(self, save: Callable[[TrainState], Path], at: int) -> None:
        super().__init__()
        self.save, self.at = save, at
        self.path: Path | None = None

    def save_if_due(self, passage: Any, state: TrainState) -> None:
        if state.step == self.at:
            self.path = self.save(state)


def run_and_resume(plan_bytes: bytes, folder: str) -> list[Any]:
    """Loss and norm of every step of a run that saves before its last, and of the last step as resumed from there."""
    steps, path = _run(plan_bytes, folder, None)
    return [steps, _run(plan_bytes, folder, path)[0]]


def _run(plan_bytes: bytes, folder: str, path: Path | None) -> tuple[list[Any], Path | None]:
    plan, ranks = read(plan_bytes), _ranks()
    bundle = build(plan, CPU)
    optimizer, state = build_optimizer(bundle), TrainState()
    data = TrainData(plan, data_rank=bundle.meshes.data_rank, project=Path(folder), barrier=ranks.wait)
    try:
        tensors = named_tensors(bundle, optimizer)
        if path is not None:
            state = load_state(path)
            load_tensors(path, tensors, ranks, real_rows=real_rows(plan, tensors))
        saver = Saver(Path(folder), plan_bytes, data.record(), None, ranks)
        services = Saving(lambda state: saver.save(tensors, state), at=(plan.steps or 0) - 1)
        train(plan, bundle, optimizer, data, state, services)
    finally:
        data.close()
    return [(r.loss, r.grad_norm) for r in services.reports], services.path


def _ranks() -> Ranks:
    if not distributed.is_initialized():
        return Ranks()
    return Ranks(distributed.get_rank(), distributed.get_world_size())
