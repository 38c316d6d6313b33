"""How are parameters sharded over the data ranks, and in which dtypes are they used, reduced and accumulated?"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor, nn
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.fsdp import CPUOffloadPolicy, FSDPModule, MixedPrecisionPolicy, OffloadPolicy, fully_shard
from torch.distributed.fsdp._fully_shard._fsdp_common import FSDPMeshInfo, HSDPMeshInfo, ShardPlacementResult
from torch.distributed.tensor import Shard

from forgeplan.plan.operations import Fsdp
from forgeplan.plan.unreduced import gradients_fit
from forgeplan.runtime.executor import Bundle
from forgeplan.runtime.model.module import Module
from forgeplan.runtime.parallel.kept import groups_of_kept_parameters
from forgeplan.runtime.precision import dtype_of
from forgeplan.runtime.registry import executes


@executes(Fsdp)
def fsdp(operation: Fsdp, bundle: Bundle) -> None:
    """Shard the model's units, or only apply the dtypes where no parameter is divided over data ranks."""
    model: Any = bundle.model
    model.set_compute_dtype(dtype_of(operation.compute))
    if not _is_sharded(bundle):
        _accumulate_in(operation, bundle)
        return
    # Logits of further tokens are parts of one product; nobody writes into them.
    warnings.filterwarnings("ignore", message="FSDP2-wrapped module .* returned a view tensor")
    with groups_of_kept_parameters(bundle.plan.mesh, bundle.device.type):
        for root in bundle.stages or [model]:
            _shard_units(operation, bundle, root)
    # Losses are divided by the counted labels of all ranks, so gradients are summed, not averaged.
    for module in _fsdp_modules(bundle):
        module.set_gradient_divide_factor(1.0)
        module.set_force_sum_reduction_for_comms(True)
    if bundle.stages:
        # The pipeline reduces gradients once, at the end of a step.
        if operation.reduce != operation.compute:
            bundle.after_microbatch = lambda is_last: _widen_unreduced(bundle)
        return
    if _unreduced_gradients_fit(operation, bundle):
        bundle.before_microbatch = model.set_requires_gradient_sync
    else:
        _accumulate_in(operation, bundle)


def kept_on(operation: Fsdp, bundle: Bundle) -> torch.device:
    """Where parameters, and with them gradients and moments, are kept: in host memory where FSDP offloads them."""
    return torch.device("cpu") if operation.offload and _is_sharded(bundle) else bundle.device


def _is_sharded(bundle: Bundle) -> bool:
    """Whether gradients must be reduced over data ranks: those that hold parts of a parameter, or copies of it."""
    return bundle.plan.mesh.data_ranks * bundle.plan.mesh.cp > 1 or any(p.division.data > 1 for p, _ in bundle.parts())


def _fsdp_modules(bundle: Bundle) -> Iterator[Any]:
    return (m for root in bundle.stages or [bundle.model] for m in root.modules() if isinstance(m, FSDPModule))


def drop_gathered(model: nn.Module) -> None:
    """Back to shards everywhere: after a forward without backward, some units have gathered tensors for parameters."""
    for module in model.modules():
        if isinstance(module, FSDPModule):
            module.reshard()


def _shard_units(operation: Fsdp, bundle: Bundle, root: Any) -> None:
    def shard(unit: list[nn.Module], compute: str, reshard: bool | int) -> None:
        fully_shard(
            unit if len(unit) > 1 else unit[0],
            mesh=_mesh(bundle.meshes.dense, "fsdp"),
            mp_policy=MixedPrecisionPolicy(
                param_dtype=dtype_of(compute), reduce_dtype=dtype_of(operation.reduce), cast_forward_inputs=False
            ),
            # Pinned memory is for copies to another device.
            offload_policy=CPUOffloadPolicy(bundle.device.type != "cpu") if operation.offload else OffloadPolicy(),
            reshard_after_forward=reshard,
            shard_placement_fn=placements,
        )

    placements = _placements(bundle)
    # Inner units first, so that outer ones leave their parameters alone.
    for module in root.modules():
        if isinstance(module, Module) and module.keeps_stored_dtype:
            shard([module], operation.params, False)
    units: list[list[nn.Module]] = root.fsdp_units()
    for unit in units:
        shard(unit, operation.compute, _reshard(operation.reshard, unit is units[-1]))
    shard([root], operation.compute, _reshard(operation.reshard, True))


def _placements(bundle: Bundle) -> Callable[[nn.Parameter], Any]:
    """Where FSDP cuts a parameter: None is dim 0 over the dense mesh."""
    found: dict[int, Any] = {}
    experts: FSDPMeshInfo | None = None
    for place, parameter in bundle.parts():
        split = place.division
        if split.expert:
            experts = experts or _mesh_info(_mesh(bundle.meshes.experts, "efsdp"))
            found[id(parameter)] = ShardPlacementResult(Shard(split.data_dim), experts)
        elif split.data_dim:
            found[id(parameter)] = Shard(split.data_dim)
    return lambda parameter: found.get(id(parameter))


def _mesh_info(mesh: DeviceMesh) -> FSDPMeshInfo:
    if mesh.ndim == 1:
        return FSDPMeshInfo(mesh=mesh, shard_mesh_dim=0)
    return HSDPMeshInfo(mesh=mesh, shard_mesh_dim=1, replicate_mesh_dim=0)


def _mesh(mesh: DeviceMesh, axis: str) -> DeviceMesh:
    """The ranks that hold parts, and, if there are any, those that hold copies."""
    return mesh["dp_replicate", axis] if mesh["dp_replicate"].size() > 1 else mesh[axis]


def _reshard(reshard: str | int, is_last: bool) -> bool | int:
    """By default the last unit stays gathered: its backward comes right after its forward."""
    if isinstance(reshard, int):
        return reshard if reshard > 1 else False
    return {"default": not is_last, "always": True, "never": False}[reshard]


def _unreduced_gradients_fit(operation: Fsdp, bundle: Bundle) -> bool:
    num_bytes = sum(p.numel() for p in bundle.model.parameters()) * dtype_of(operation.reduce).itemsize
    return gradients_fit(num_bytes, bundle.plan.job.cluster)


def _widen_unreduced(bundle: Bundle) -> None:
    """Add what gathered parameters have got to sums in the dtype of reduction.

    FSDP does so whenever a gradient passes a unit. Where a pipeline computes gradients of weights apart, none passes,
    and those of several microbatches would be added in the dtype of compute.
    """
    for module in _fsdp_modules(bundle):
        for group in module._get_fsdp_state()._fsdp_param_groups:
            for parameter in group.fsdp_params:
                if hasattr(parameter, "_unsharded_param"):
                    parameter.accumulate_unsharded_grad_if_needed()
                    parameter.to_accumulated_grad_if_needed()


def _accumulate_in(operation: Fsdp, bundle: Bundle) -> None:
    """Let gradients that are there after every microbatch add up in the dtype of reduction.

    Autograd and FSDP add them in the dtype of the parameter: in bf16, the sum of many would stop growing.
    """
    if operation.reduce == operation.params:
        return
    dtype = dtype_of(operation.reduce)
    sums: dict[str, Tensor] = {}

    def add(is_last: bool) -> None:
        for name, parameter in bundle.model.named_parameters():
            if parameter.grad is not None:
                gradient = parameter.grad.to(dtype)
                sums[name] = sums[name].add_(gradient) if name in sums else gradient
                parameter.grad = None
            if is_last and name in sums:
                parameter.grad = sums.pop(name).to(parameter.dtype)

    bundle.after_microbatch = add
