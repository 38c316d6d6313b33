"""What does the training loop want from an optimizer, and how is the plan's one made?"""

from __future__ import annotations

from typing import Protocol

import torch
from torch import Tensor, nn

from forgeplan.diagnostics.refusal import Refusal
from forgeplan.runtime.executor import AS_PLANNED, Bundle
from forgeplan.runtime.optim.groups import Group
from forgeplan.runtime.parallel.placed import local
from forgeplan.runtime.precision import dtype_of, word_of
from forgeplan.runtime.registry import implementation


class Optimizer(Protocol):
    """State exists from the beginning, so that a checkpoint can be loaded into it before the first update."""

    groups: tuple[Group, ...]
    peak_rate: float

    def update(self, rate: float) -> None:
        """One update of all parameters that have a gradient, at this learning rate."""

    def named_state(self) -> dict[str, dict[str, Tensor]]:
        """For every parameter, its state by name: this rank's parts, cut like the parameter, and scalars."""


def build_optimizer(bundle: Bundle) -> Optimizer:
    """The plan's optimizer over the built model. Raises Refusal FP1009 if its moments are not in the planned dtype."""
    spec = bundle.plan.job.optimizer
    planned = bundle.plan.job.precision.moments
    optimizer: Optimizer = implementation("optimizer", spec)(spec, bundle, dtype_of(planned))
    for name, state in optimizer.named_state().items():
        for what, tensor in state.items():
            if tensor.dim() and word_of(tensor.dtype) != planned:
                found = word_of(tensor.dtype)
                raise Refusal(AS_PLANNED, f"the moments are planned in {planned}, and {name}.{what} is {found}")
    return optimizer


def clear_gradients(model: nn.Module) -> None:
    for parameter in model.parameters():
        parameter.grad = None


def zeros_for(parameter: Tensor, dtype: torch.dtype) -> Tensor:
    return torch.zeros_like(local(parameter), dtype=dtype)
