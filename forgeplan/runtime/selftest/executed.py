"""What does the executor train, on the ranks of the plan's mesh?"""

from __future__ import annotations

from hashlib import sha256
from typing import Any

import torch
from attrs import frozen
from torch import Tensor, distributed
from torch.distributed.tensor import DTensor

from forgeplan.plan.execution_plan import ExecutionPlan
from forgeplan.runtime.executor import Bundle, build, named_views
from forgeplan.runtime.optim.optimizer import build_optimizer
from forgeplan.runtime.parallel.placed import local
from forgeplan.runtime.selftest.data import Quiet, TinyData
from forgeplan.runtime.selftest.reference import Trained
from forgeplan.runtime.state import TrainState
from forgeplan.runtime.train import train


def keep_first_gradients(bundle: Bundle) -> dict[str, Tensor]:
    """Where the gradients of the first step will be, whole, from before they are clipped. Collective in that step."""
    kept: dict[str, Tensor] = {}

    def keep() -> None:
        if not kept:
            kept.update(
                whole({place.name: place.view(local(p.grad)) for place, p in bundle.parts() if p.grad is not None})
            )

    bundle.complete_gradients.append(keep)
    return kept


def train_plan(plan: ExecutionPlan, packed: bool, device_type: str = "cpu") -> Trained:
    """Train on this process, which is one of the plan's ranks, on tiny data. Collective over all ranks."""
    bundle = build(plan, _own_device(device_type))
    initial = of_all_stages(bundle, whole(named_views(bundle)))
    gradients, optimizer, services = keep_first_gradients(bundle), build_optimizer(bundle), Quiet()
    train(plan, bundle, optimizer, TinyData(plan, bundle.meshes.data_rank, packed), TrainState(), services)
    return Trained(
        [r.loss for r in services.reports],
        [r.grad_norm for r in services.reports],
        [r.lr for r in services.reports],
        of_all_stages(bundle, gradients),
        initial,
        of_all_stages(bundle, whole(named_views(bundle))),
    )


def train_and_report(plan: ExecutionPlan, packed: bool, device_type: str = "cpu") -> Any:
    """In a pool: everything from rank 0, from the others what must be the same there."""
    trained = train_plan(plan, packed, device_type)
    is_first = not distributed.is_initialized() or distributed.get_rank() == 0
    return trained if is_first else Common.of(trained)


@frozen
class Common:
    """What every rank has alike: numbers of steps, and the bits of all initial tensors."""

    numbers: tuple[list[float], list[float], list[float]]
    initial: dict[str, str]

    @classmethod
    def of(cls, trained: Trained) -> Common:
        as_bytes = {name: t.flatten().view(torch.uint8).numpy().tobytes() for name, t in trained.initial.items()}
        digests = {name: sha256(data).hexdigest() for name, data in as_bytes.items()}
        return cls((trained.losses, trained.norms, trained.rates), digests)

    def difference(self, other: Common) -> str:
        """What ranks do not agree on; empty where they do."""
        for name, digest in self.initial.items():
            if other.initial.get(name) != digest:
                return f"begin with other values of {name}"
        # As text, in which NaN is NaN.
        return "" if repr(self.numbers) == repr(other.numbers) else "report other losses, norms or rates"


def _own_device(device_type: str) -> torch.device:
    return torch.device("cpu") if device_type == "cpu" else torch.device(device_type, torch.cuda.current_device())


@torch.no_grad()
def whole(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    """Copies of the global tensors, on the CPU. Collective."""
    return {
        name: (t.full_tensor() if isinstance(t, DTensor) else t).detach().cpu().clone() for name, t in tensors.items()
    }


def of_all_stages(bundle: Bundle, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    """With those of the other pipeline ranks. Collective."""
    group = bundle.meshes.group("pp")
    if group.size == 1:
        return tensors
    stages: list[Any] = [None] * group.size
    distributed.all_gather_object(stages, tensors, group=group.process_group)
    return {name: tensor for stage in stages for name, tensor in stage.items()}
