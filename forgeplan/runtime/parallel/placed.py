"""Where is each parameter of the model, and which part of it is here?

Modules compute with plain local tensors. The global view, a DTensor over the same memory, exists only for checkpoints
and comparisons.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
from attrs import frozen
from torch import Tensor
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.tensor import DTensor, Placement, Replicate, Shard
from torch.distributed.tensor._dtensor_spec import DTensorSpec, TensorMeta
from torch.distributed.tensor.placement_types import _StridedShard

from forgeplan.plan.execution_plan import ExecutionPlan
from forgeplan.plan.operations import Tp
from forgeplan.plan.sharding import Division, Slices, division
from forgeplan.runtime.meshes import Meshes
from forgeplan.spec.model.parameter import Parameter


@frozen
class Placed:
    """A parameter as the ranks of its pipeline stage divide it, and this rank's part."""

    name: str
    division: Division
    slices: Slices
    mesh: DeviceMesh | None
    """None for one rank alone, or a buffer, which every rank holds whole."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Of this rank's part."""
        return tuple(part.stop - part.start for part in self.slices)

    def view(self, part: Tensor) -> Tensor:
        """The global tensor whose part on this rank is `part`, sharing its memory."""
        if self.mesh is None:
            return part
        whole = TensorMeta(torch.Size(self.division.shape), _strides(self.division.shape), part.dtype)
        spec = DTensorSpec(self.mesh, (Replicate(), *self._placements()), tensor_meta=whole)
        # As FSDP makes its own: `from_local` copies what is in host memory to the device of the mesh, and what is
        # loaded into the copy is lost.
        return DTensor(part.detach(), spec, requires_grad=False)

    def _placements(self) -> tuple[Placement, Placement]:
        split = self.division
        if split.weight_dim is None:
            return Shard(split.data_dim), Replicate()
        if split.weight_dim == split.data_dim:
            # FSDP cut what tp or ep had left: the first axis is the inner one.
            return _StridedShard(split.data_dim, split_factor=split.weights), Shard(split.weight_dim)
        return Shard(split.data_dim), Shard(split.weight_dim)


def placed(plan: ExecutionPlan, meshes: Meshes) -> dict[str, Placed]:
    """Every parameter and buffer of the plan's model by name."""
    options = next((op for op in plan.program if isinstance(op, Tp)), Tp("mesh"))
    model = plan.job.model
    found = {}
    for p in model.parameters():
        split = division(p.shape, p.cut, plan.mesh, sequence=options.sequence, kv=options.kv)
        data, weight = meshes.expert_index if split.expert else meshes.weight_index
        mesh = None if plan.mesh.world == 1 else meshes.experts if split.expert else meshes.dense
        found[p.name] = Placed(p.name, split, split.slices(weight, data), mesh)
    return found | {name: _whole(name, shape) for name, shape in _buffers(model.buffers())}


def local(tensor: Tensor) -> Tensor:
    """This rank's part of a tensor, sharing its memory: plain, whatever surrounds it."""
    part = tensor.detach()
    part = part.to_local() if isinstance(part, DTensor) else part
    wrapper = cast_before_gather(part)
    return part if wrapper is None else wrapper._tensor.detach()


def cast_before_gather(tensor: Tensor) -> Any:
    """torchao's wrapper around this rank's part, which casts it before FSDP gathers it; None if there is none."""
    part = tensor._local_tensor if isinstance(tensor, DTensor) else tensor
    return part if hasattr(part, "fsdp_pre_all_gather") else None


def _buffers(buffers: Iterable[Parameter]) -> Iterable[tuple[str, tuple[int, ...]]]:
    return ((buffer.name, buffer.shape) for buffer in buffers)


def _whole(name: str, shape: tuple[int, ...]) -> Placed:
    split = Division(shape, None, 1, 0, 1, copies=1, expert=False, sum_over_tp=False)
    return Placed(name, split, split.slices(0, 0), None)


def _strides(shape: tuple[int, ...]) -> tuple[int, ...]:
    strides, step = [], 1
    for size in reversed(shape):
        strides.append(step)
        step *= size
    return tuple(reversed(strides))
