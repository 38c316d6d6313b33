"""What does the executor train, on the ranks of the plan's mesh?"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.distributed.tensor import DTensor

from forgeplan.plan.execution_plan import ExecutionPlan
from forgeplan.runtime.executor import Bundle, build, named_views
from forgeplan.runtime.optim.optimizer import build_optimizer
from forgeplan.runtime.parallel.placed import local
from forgeplan.runtime.state import TrainState
from forgeplan.runtime.train import train
from tests.parity.reference import Trained
from tests.runtime.tiny import Quiet, TinyData


class Recording:
    """The plan's optimizer, which also keeps the gradients of the first update."""

    def __init__(self, bundle: Bundle) -> None:
        self.bundle, self.inner = bundle, build_optimizer(bundle)
        self.gradients: dict[str, Tensor] = {}

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    def update(self, rate: float) -> None:
        if not self.gradients:
            self.gradients = whole(
                {place.name: place.view(local(p.grad)) for place, p in self.bundle.parts() if p.grad is not None}
            )
        self.inner.update(rate)


def train_plan(plan: ExecutionPlan, packed: bool) -> Trained:
    bundle = build(plan, torch.device("cpu"))
    initial = of_all_stages(bundle, whole(named_views(bundle)))
    optimizer, services = Recording(bundle), Quiet()
    train(plan, bundle, optimizer, TinyData(plan, bundle.meshes.data_rank, packed), TrainState(), services)
    return Trained(
        [r.loss for r in services.reports],
        [r.grad_norm for r in services.reports],
        [r.lr for r in services.reports],
        of_all_stages(bundle, optimizer.gradients),
        initial,
        of_all_stages(bundle, whole(named_views(bundle))),
    )


def train_and_report(plan: ExecutionPlan, packed: bool) -> Any:
    """In a pool: everything from rank 0, from the others what must be the same there."""
    trained = train_plan(plan, packed)
    is_first = not torch.distributed.is_initialized() or torch.distributed.get_rank() == 0
    return trained if is_first else (trained.losses, trained.norms, trained.rates)


def whole(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    """Copies of the global tensors. Collective."""
    return {
        name: (t.detach().full_tensor() if isinstance(t, DTensor) else t.detach()).clone()
        for name, t in tensors.items()
    }


def of_all_stages(bundle: Bundle, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    """With those of the other pipeline ranks. Collective."""
    group = bundle.meshes.group("pp")
    if group.size == 1:
        return tensors
    stages: list[Any] = [None] * group.size
    torch.distributed.all_gather_object(stages, tensors, group=group.process_group)
    return {name: tensor for stage in stages for name, tensor in stage.items()}
