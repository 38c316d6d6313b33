"""How are parameters sharded over the data ranks, and in which dtypes are they used, reduced and accumulated?"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

from torch import Tensor, nn
from torch.distributed.fsdp import FSDPModule, MixedPrecisionPolicy, fully_shard
from torch.distributed.fsdp._fully_shard import _fully_shard

from forgeplan.plan.operations import Fsdp
from forgeplan.runtime.executor import Bundle
from forgeplan.runtime.precision import dtype_of
from forgeplan.runtime.registry import executes

SHARE_FOR_UNREDUCED_GRADIENTS = 0.25
"""Of a device's memory: gradients of the whole model may take that much, so that a step reduces them once."""


@executes(Fsdp)
def fsdp(operation: Fsdp, bundle: Bundle) -> None:
    """Shard the model's units, or only apply the dtypes where there is one data rank."""
    model: Any = bundle.model
    model.set_compute_dtype(dtype_of(operation.compute))
    if bundle.meshes.fsdp is None:
        _accumulate_in(operation, bundle)
        return
    with _one_group_for_equal_meshes():
        _shard_units(operation, bundle, model)
    # Losses are divided by the counted labels of all ranks, so gradients are summed, not averaged.
    for module in model.modules():
        if isinstance(module, FSDPModule):
            module.set_gradient_divide_factor(1.0)
            module.set_force_sum_reduction_for_comms(True)
    if _unreduced_gradients_fit(operation, bundle):
        bundle.before_microbatch = model.set_requires_gradient_sync
    else:
        _accumulate_in(operation, bundle)


def drop_gathered(model: nn.Module) -> None:
    """Back to shards everywhere: after a forward without backward, some units have gathered tensors for parameters."""
    for module in model.modules():
        if isinstance(module, FSDPModule):
            module.reshard()


def _shard_units(operation: Fsdp, bundle: Bundle, model: Any) -> None:
    shard = partial(
        fully_shard,
        mesh=bundle.meshes.fsdp,
        mp_policy=MixedPrecisionPolicy(
            param_dtype=dtype_of(operation.compute), reduce_dtype=dtype_of(operation.reduce), cast_forward_inputs=False
        ),
    )
    units: list[list[nn.Module]] = model.fsdp_units()
    for unit in units:
        shard(unit if len(unit) > 1 else unit[0], reshard_after_forward=_reshard(operation.reshard, unit is units[-1]))
    shard(model, reshard_after_forward=_reshard(operation.reshard, True))


def _reshard(reshard: str | int, is_last: bool) -> bool | int:
    """By default the last unit stays gathered: its backward comes right after its forward."""
    if isinstance(reshard, int):
        return reshard if reshard > 1 else False
    return {"default": not is_last, "always": True, "never": False}[reshard]


def _unreduced_gradients_fit(operation: Fsdp, bundle: Bundle) -> bool:
    """A function of the plan alone, so that every rank decides alike. Unknown memory is too little, except on a CPU."""
    cluster = bundle.plan.job.cluster
    if cluster.hbm is None:
        return cluster.arch == "cpu"
    num_bytes = sum(p.numel() for p in bundle.model.parameters()) * dtype_of(operation.reduce).itemsize
    return num_bytes <= SHARE_FOR_UNREDUCED_GRADIENTS * cluster.hbm


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


internals: Any = _fully_shard


@contextmanager
def _one_group_for_equal_meshes() -> Iterator[None]:
    """Resharding to a number of ranks makes two process groups for every unit; all units can use the same two."""
    make: Callable[..., Any] = internals._get_post_forward_mesh_info
    made: dict[Any, Any] = {}

    def memoised(reshard_after_forward: bool | int, mesh_info: Any) -> Any:
        key = (type(reshard_after_forward), reshard_after_forward)
        if key not in made:
            made[key] = make(reshard_after_forward, mesh_info)
        # Only "reshard to all" gives back the mesh information itself, which belongs to the unit that asks.
        return mesh_info if reshard_after_forward is True else made[key]

    internals._get_post_forward_mesh_info = memoised
    try:
        yield
    finally:
        internals._get_post_forward_mesh_info = make
