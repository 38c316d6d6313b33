"""Which process groups does this rank talk in?"""

from __future__ import annotations

from attrs import frozen
from torch import Tensor, device, distributed
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh

from forgeplan.diagnostics.refusal import InternalError
from forgeplan.plan.mesh import Mesh


@frozen
class Meshes:
    """The plan's mesh, this rank's place in it, and the groups made from it. One process needs no process group."""

    mesh: Mesh
    rank: int
    fsdp: DeviceMesh | None
    """(dp_shard,) or (dp_replicate, dp_shard); None where there is one data rank."""

    @classmethod
    def of(cls, mesh: Mesh, device: device) -> Meshes:
        """Collective over all ranks. With more than one rank, the process group of the world must exist."""
        if mesh.world == 1:
            return cls(mesh, 0, None)
        if not distributed.is_initialized() or distributed.get_world_size() != mesh.world:
            raise InternalError(f"the mesh has {mesh.world} ranks, and no process group of that size exists")
        names = ("dp_shard",) if mesh.dp_replicate == 1 else ("dp_replicate", "dp_shard")
        shape = tuple(mesh.degrees[name] for name in names)
        return cls(mesh, distributed.get_rank(), init_device_mesh(device.type, shape, mesh_dim_names=names))

    @property
    def data_rank(self) -> int:
        return self.mesh.data_rank(self.rank)

    def sum(self, values: Tensor) -> Tensor:
        """Sum over all ranks, in place; the same bits on every rank."""
        if self.mesh.world > 1:
            distributed.all_reduce(values)
        return values
