"""What does the training loop want from an optimizer, and how is the plan's one made?"""

from __future__ import annotations

from typing import Protocol

import torch
from torch import Tensor, nn
from torch.distributed.tensor import DTensor

from forgeplan.diagnostics.refusal import Refusal
from forgeplan.runtime.executor import AS_PLANNED, Bundle
from forgeplan.runtime.optim.groups import Group
from forgeplan.runtime.precision import dtype_of, word_of
from forgeplan.runtime.registry import implementation


class Optimizer(Protocol):
    """State exists from the beginning, so that a checkpoint can be loaded into it before the first update."""

    groups: tuple[Group, ...]
    peak_rate: float

    def update(self, rate: float) -> None:
        """One update of all parameters that have a gradient, at this learning rate."""

    def named_state(self) -> dict[str, Tensor]:
        """`<parameter>.<what>` for every tensor of the state, sharded like its parameter, over the storage in use."""


def build_optimizer(bundle: Bundle) -> Optimizer:
    """The plan's optimizer over the built model. Raises Refusal FP1009 if its moments are not in the planned dtype."""
    spec = bundle.plan.job.optimizer
    planned = bundle.plan.job.precision.moments
    optimizer: Optimizer = implementation("optimizer", spec)(spec, bundle, dtype_of(planned))
    for name, tensor in optimizer.named_state().items():
        if tensor.dim() and word_of(tensor.dtype) != planned:
            raise Refusal(AS_PLANNED, f"the moments are planned in {planned}, and {name} is {word_of(tensor.dtype)}")
    return optimizer


def clear_gradients(model: nn.Module) -> None:
    for parameter in model.parameters():
        parameter.grad = None


def local(tensor: Tensor) -> Tensor:
    """This rank's part of a tensor, sharing its memory."""
    part = tensor.detach()
    return part.to_local() if isinstance(part, DTensor) else part


def sharded_like(parameter: Tensor, part: Tensor) -> Tensor:
    """The global tensor whose part on this rank is `part`, cut like `parameter`."""
    if not isinstance(parameter, DTensor):
        return part
    return DTensor.from_local(
        part,
        parameter.device_mesh,
        parameter.placements,
        run_check=False,
        shape=parameter.shape,
        stride=parameter.stride(),
    )


def zeros_for(parameter: Tensor, dtype: torch.dtype) -> Tensor:
    return torch.zeros_like(local(parameter), dtype=dtype)
