"""How does a program become a model that can be trained?"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import torch
from attrs import define, field
from torch import Tensor, nn

from forgeplan.diagnostics.codes import code
from forgeplan.diagnostics.refusal import InternalError, Refusal
from forgeplan.plan.execution_plan import ExecutionPlan
from forgeplan.plan.verify import check_order
from forgeplan.runtime.meshes import Meshes
from forgeplan.runtime.precision import word_of
from forgeplan.runtime.registry import implementation

AS_PLANNED = code("FP1009", "what was built is what was planned")

NUM_DIFFERENCES_SHOWN = 5


@define
class Bundle:
    """What the operations of a program work on, each leaving it further along."""

    plan: ExecutionPlan
    device: torch.device
    meshes: Meshes
    _model: nn.Module | None = field(default=None, alias="model")
    before_microbatch: Callable[[bool], object] = lambda is_last: None
    """Told before each forward of a step whether it is the step's last: gradients may then be reduced only once."""
    after_microbatch: Callable[[bool], object] = lambda is_last: None
    """Told the same after each backward: gradients may be kept in another dtype until the last."""

    @property
    def model(self) -> nn.Module:
        if self._model is None:
            raise InternalError("the program has built no model yet")
        return self._model

    @model.setter
    def model(self, model: nn.Module) -> None:
        self._model = model


def build(plan: ExecutionPlan, device: torch.device) -> Bundle:
    """Carry out the plan's program, in its order. Collective over all ranks.

    Raises Refusal FP1008 for a program out of order, FP1009 where the model is not the planned one.
    """
    check_order(plan)
    bundle = Bundle(plan, device, Meshes.of(plan.mesh, device))
    for operation in plan.program:
        implementation("operation", operation)(operation, bundle)
    check_as_planned(bundle)
    return bundle


def check_as_planned(bundle: Bundle) -> None:
    """Names, global shapes and stored dtypes of all parameters against the plan's list."""
    planned = {fact.name: (tuple(fact.shape), fact.dtype) for fact in bundle.plan.tensors}
    built = {name: (tuple(p.shape), word_of(p.dtype)) for name, p in bundle.model.named_parameters()}
    different = sorted(name for name in planned.keys() | built.keys() if planned.get(name) != built.get(name))
    if different:
        lines = [
            f"{name}: planned {_shown(planned.get(name))}, built {_shown(built.get(name))}"
            for name in different[:NUM_DIFFERENCES_SHOWN]
        ]
        more = len(different) - len(lines)
        raise Refusal(
            AS_PLANNED,
            f"{len(different)} of {len(planned)} parameters differ from the plan\n  "
            + "\n  ".join(lines + ([f"and {more} more"] if more else [])),
            "the plan was compiled by another version, or altered: compile it again",
        )


def _shown(fact: tuple[tuple[int, ...], str] | None) -> str:
    return "nothing" if fact is None else f"{'×'.join(map(str, fact[0]))} {fact[1]}"


class HasState(Protocol):
    def named_state(self) -> dict[str, Tensor]: ...


def named_tensors(model: nn.Module, optimizer: HasState) -> dict[str, Tensor]:
    """Every tensor of the training state by a name free of layout: `model.<parameter>`, `optim.<parameter>.exp_avg` …

    Sharded ones are DTensors over the storage in use, so that loading into them in place restores the run.
    """
    found = {f"model.{name}": p.detach() for name, p in model.named_parameters()}
    found |= {f"optim.{name}": t for name, t in optimizer.named_state().items()}
    return found
