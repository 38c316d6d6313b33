"""Over which ranks do parameters stay sharded between forward and backward, where that is a number of them?

FSDP would make two groups for every unit, and from the mesh of this rank alone: the ranks of other pipeline stages, or
with other parts of weights, would make other groups at the same time, and all would wait for one another.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp._fully_shard import _fsdp_init, _fully_shard
from torch.distributed.fsdp._fully_shard._fsdp_common import HSDPMeshInfo

from forgeplan.plan.mesh import Mesh

_NAME = "_get_post_forward_mesh_info"
_ASKING: tuple[Any, ...] = (_fully_shard, _fsdp_init)
"""Modules of torch that ask, for the unit's own mesh and for that of its experts."""


@contextmanager
def groups_of_kept_parameters(mesh: Mesh, device_type: str) -> Iterator[None]:
    """Within it, `fully_shard` gets the groups of every number of ranks from here: made once, by all ranks together."""
    ask = getattr(_fsdp_init, _NAME)
    made: dict[tuple[int, bool], HSDPMeshInfo] = {}

    def info(reshard_after_forward: bool | int, mesh_info: Any) -> Any:
        kept, ranks = reshard_after_forward, mesh_info.shard_mesh_size
        # True is no number here: FSDP knows what to do with all and none.
        if kept is True or kept is False or kept == ranks:
            return ask(bool(kept), mesh_info)
        key = (kept, "efsdp" in mesh_info.mesh.mesh_dim_names)
        if key not in made:
            made[key] = _groups(mesh, device_type, kept, ranks, mesh.ep if key[1] else mesh.tp)
        return made[key]

    for module in _ASKING:
        setattr(module, _NAME, info)
    try:
        yield
    finally:
        for module in _ASKING:
            setattr(module, _NAME, ask)


def _groups(mesh: Mesh, device_type: str, kept: int, ranks: int, inner: int) -> HSDPMeshInfo:
    """Neighbours among the `ranks` that share a parameter, which lie `inner` apart; collective over the world."""
    shape = (mesh.pp, mesh.dp_replicate * ranks // kept, kept, inner)
    grid = init_device_mesh(device_type, shape, mesh_dim_names=("pp", "groups", "kept", "inner"))
    return HSDPMeshInfo(grid["groups", "kept"], shard_mesh_dim=1, replicate_mesh_dim=0)
