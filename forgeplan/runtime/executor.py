"""How does a program become a model that can be trained?"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Protocol

import torch
from attrs import define, evolve, field
from torch import Tensor, distributed, nn
from torch.nn import functional as F

from forgeplan.diagnostics.codes import code
from forgeplan.diagnostics.refusal import InternalError, Refusal
from forgeplan.plan.execution_plan import ExecutionPlan, TensorFact
from forgeplan.plan.operations import Fp8
from forgeplan.plan.verify import check_order
from forgeplan.runtime.meshes import Meshes
from forgeplan.runtime.model.module import Module
from forgeplan.runtime.parallel.axes import Axes
from forgeplan.runtime.parallel.collectives import Group
from forgeplan.runtime.parallel.placed import Placed, local, placed
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
    placed: dict[str, Placed]
    """Where every parameter and buffer of the plan's model is, by name."""
    axes: Axes = field(factory=Axes)
    _model: nn.Module | None = field(default=None, alias="model")
    stages: list[nn.Module] = field(factory=list)
    """The pipeline stages of this rank, made of the modules of `model`; none without pp."""
    schedule: Any = None
    """How microbatches pass the model forward and back: None is one after the other; see `pipeline.py`."""
    forward_only: Any = None
    """The same without backward, for evaluations."""
    loss: Callable[..., Any] | None = None
    """What stands in for the plan's loss, as `compile` translates it; None is the loss itself."""
    before_microbatch: Callable[[bool], object] = lambda is_last: None
    """Told before each forward of a step whether it is the step's last: gradients may then be reduced only once."""
    after_microbatch: Callable[[bool], object] = lambda is_last: None
    """Told the same after each backward: gradients may be kept in another dtype until the last."""
    complete_gradients: list[Callable[[], object]] = field(factory=list)
    """Called in turn once all gradients of a step are there, before their norm is taken."""
    after_update: list[Callable[[], object]] = field(factory=list)
    """Called in turn after each update of the weights."""

    @property
    def model(self) -> nn.Module:
        """What this rank holds of the model; parameters have the names that they have in the whole."""
        if self._model is None:
            raise InternalError("the program has built no model yet")
        return self._model

    @model.setter
    def model(self, model: nn.Module) -> None:
        self._model = model

    def use(self, axes: Axes) -> None:
        """Let every module know the ranks that its work is divided over. Collective."""
        splitting = [axis for axis, parts in (("cp", axes.cp.group.size), ("tp", axes.tp.parts)) if parts > 1]
        microbatch = self.meshes.group("_".join(splitting)) if splitting else Group()
        self.axes = axes = evolve(axes, microbatch=microbatch)
        for root in (self.model, *self.stages):
            for module in root.modules():
                if isinstance(module, Module):
                    module.axes = axes

    def parts(self) -> Iterator[tuple[Placed, nn.Parameter]]:
        """Every parameter of this rank, with its place."""
        for name, parameter in self.model.named_parameters():
            yield self.placed[name], parameter

    def gradients(self) -> list[tuple[int, Tensor]]:
        """This rank's part of every gradient there is, with the number of ranks that hold the same."""
        return [(place.division.copies, local(p.grad)) for place, p in self.parts() if p.grad is not None]


def build(plan: ExecutionPlan, device: torch.device) -> Bundle:
    """Carry out the plan's program, in its order. Collective over all ranks.

    Raises Refusal FP1008 for a program out of order, FP1009 where the model is not the planned one.
    """
    check_order(plan)
    meshes = Meshes.of(plan.mesh, device)
    bundle = Bundle(plan, device, meshes, placed(plan, meshes))
    for operation in plan.program:
        implementation("operation", operation)(operation, bundle)
    check_as_planned(bundle)
    return bundle


def check_as_planned(bundle: Bundle) -> None:
    """Names, global shapes and stored dtypes of all parameters against the plan's list; a rank may have fewer stages.

    Collective over pipeline stages, which together must hold every parameter once.
    """
    planned = {fact.name: fact for fact in bundle.plan.tensors}
    wrong = []
    for name, parameter in bundle.model.named_parameters():
        fact, place, found = planned.get(name), bundle.placed[name], local(parameter)
        if fact is None or (fact.shape, fact.dtype) != (place.division.shape, word_of(found.dtype)):
            wrong.append(f"{name}: planned {_shown(fact)}, built {_shape(place.division.shape)} {word_of(found.dtype)}")
        elif tuple(found.shape) != place.shape:
            wrong.append(
                f"{name}: this rank's part is planned as {_shape(place.shape)}, and built {_shape(found.shape)}"
            )
    held = {name for name, _ in bundle.model.named_parameters()}
    wrong += [f"{name}: planned, and not built" for name in _held_nowhere(bundle, planned.keys(), held)]
    wrong += [f"{name}: planned in float8, and multiplies otherwise" for name in _not_in_float8(bundle)]
    if wrong:
        more = len(wrong) - NUM_DIFFERENCES_SHOWN
        raise Refusal(
            AS_PLANNED,
            f"{len(wrong)} of {len(planned)} parameters or layers differ from the plan\n  "
            + "\n  ".join(wrong[:NUM_DIFFERENCES_SHOWN] + ([f"and {more} more"] if more > 0 else [])),
            "the plan was compiled by another version, or altered: compile it again",
        )


def _not_in_float8(bundle: Bundle) -> list[str]:
    """Layers that the plan converts, and no stage of this rank's pipeline has converted."""
    planned = [layer for op in bundle.plan.program if isinstance(op, Fp8) for layer in op.layers]
    if not planned:
        return []
    found = {name for name, m in bundle.model.named_modules() if getattr(m, "product", F.linear) is not F.linear}
    return _held_nowhere(bundle, planned, found)


def _held_nowhere(bundle: Bundle, planned: Iterable[str], held: set[str]) -> list[str]:
    """Of what is planned, what no stage of this rank's pipeline has."""
    group = bundle.meshes.group("pp").process_group
    if group is not None:
        everybody: list[Any] = [None] * bundle.plan.mesh.pp
        distributed.all_gather_object(everybody, held, group=group)
        held = set().union(*everybody)
    return sorted(set(planned) - held)


def _shown(fact: TensorFact | None) -> str:
    return "nothing" if fact is None else f"{_shape(fact.shape)} {fact.dtype}"


def _shape(shape: Iterable[int]) -> str:
    return "×".join(map(str, shape))


class HasState(Protocol):
    def named_state(self) -> dict[str, dict[str, Tensor]]: ...


def named_views(bundle: Bundle) -> dict[str, Tensor]:
    """The global tensor of every parameter and buffer of this rank, by name, over the storage in use."""
    return {
        name: bundle.placed[name].view(local(tensor))
        for name, tensor in (*bundle.model.named_parameters(), *bundle.model.named_buffers())
    }


def named_tensors(bundle: Bundle, optimizer: HasState) -> dict[str, Tensor]:
    """Every tensor of the training state by a name free of layout: `model.<parameter>`, `optim.<parameter>.exp_avg` …

    Divided ones are DTensors over the storage in use, so that loading into them in place restores the run.
    """
    found = {f"model.{name}": tensor for name, tensor in named_views(bundle).items()}
    for name, parts in optimizer.named_state().items():
        found |= {
            f"optim.{name}.{what}": bundle.placed[name].view(part) if part.dim() else part
            for what, part in parts.items()
        }
    return found


def real_rows(plan: ExecutionPlan, names: Iterable[str]) -> dict[str, int]:
    """Of the named tensors of the state, those with a row for each token id, and how many ids are real."""
    tables = [p.name for p in plan.job.model.parameters() if p.role in ("embedding", "head")]
    beginnings = tuple(f"optim.{table}." for table in tables)
    weights = {f"model.{table}" for table in tables}
    return {n: plan.job.model.vocab for n in names if n in weights or n.startswith(beginnings)}
