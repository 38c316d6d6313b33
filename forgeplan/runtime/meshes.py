"""Which process groups does this rank talk in?"""

from __future__ import annotations

from collections.abc import Callable

from attrs import define, field
from torch import Tensor, device, distributed
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh

from forgeplan.diagnostics.refusal import InternalError
from forgeplan.plan.mesh import Mesh
from forgeplan.runtime.parallel.collectives import Group

DENSE = ("dp_replicate", "fsdp", "tp")
EXPERT = ("dp_replicate", "efsdp", "ep")


@define
class Meshes:
    """The plan's mesh, this rank's place in it, and the groups made from it when first asked for.

    Making groups is collective: all ranks ask in the order of the program. One process needs no process group.
    """

    mesh: Mesh
    rank: int
    device_type: str
    _made: dict[tuple[str, ...], DeviceMesh] = field(factory=dict)

    @classmethod
    def of(cls, mesh: Mesh, device: device) -> Meshes:
        """With more than one rank, the process group of the world must exist."""
        if mesh.world == 1:
            return cls(mesh, 0, device.type)
        if not distributed.is_initialized() or distributed.get_world_size() != mesh.world:
            raise InternalError(f"the mesh has {mesh.world} ranks, and no process group of that size exists")
        return cls(mesh, distributed.get_rank(), device.type)

    @property
    def dense(self) -> DeviceMesh:
        """(dp_replicate, fsdp, tp) of this rank's pipeline stage: what dense parameters are divided over."""
        return self._grid(("pp", *DENSE))[DENSE]

    @property
    def experts(self) -> DeviceMesh:
        """(dp_replicate, efsdp, ep) of the same ranks: what experts are divided over."""
        return self._grid(("pp", *EXPERT))[EXPERT]

    def group(self, axis: str) -> Group:
        """The ranks of `axis` that this rank is one of: pp, tp, cp, ep, `cp_tp` for both, or `fsdp`, which gather."""
        grids = {
            "pp": ("pp", *DENSE),
            "fsdp": ("pp", *DENSE),
            "tp": ("pp", *DENSE),
            "cp": ("outer", "cp", "tp"),
            "cp_tp": ("outer", "cp_tp"),
            "ep": ("pp", *EXPERT),
        }
        if self._size(axis) == 1:
            return Group()
        dim = self._grid(grids[axis])[axis]
        return Group(dim.size(), dim.get_local_rank(), dim.get_group())

    @property
    def data_rank(self) -> int:
        return self.mesh.data_rank(self.rank)

    @property
    def weight_index(self) -> tuple[int, int]:
        """(position in fsdp, position in tp), which say which part of a dense parameter this rank holds."""
        at = self.mesh.coordinates(self.rank)
        return at["dp_shard"] * self.mesh.cp + at["cp"], at["tp"]

    @property
    def expert_index(self) -> tuple[int, int]:
        """(position in efsdp, position in ep), the same of a stack of experts."""
        return divmod(self.rank % self.mesh.expert_fold, self.mesh.ep)

    @property
    def is_counted(self) -> bool:
        """Whether this rank speaks for the tokens it works on: one for every part of the data, the first of its tp and
        pp peers."""
        at = self.mesh.coordinates(self.rank)
        return at["tp"] == 0 and at["pp"] == 0

    def sum(self, values: Tensor) -> Tensor:
        """Sum over all ranks, in place; the same bits on every rank."""
        if self.mesh.world > 1:
            distributed.all_reduce(values)
        return values

    def _grid(self, names: tuple[str, ...]) -> DeviceMesh:
        if names not in self._made:
            shape = tuple(self._size(name) for name in names)
            self._made[names] = init_device_mesh(self.device_type, shape, mesh_dim_names=names)
        return self._made[names]

    def _size(self, axis: str) -> int:
        mesh = self.mesh
        folded: dict[str, Callable[[], int]] = {
            "fsdp": lambda: mesh.fsdp_degree,
            "efsdp": lambda: mesh.expert_fold // mesh.ep,
            "ep": lambda: mesh.ep,
            "cp_tp": lambda: mesh.cp * mesh.tp,
            "outer": lambda: mesh.world // (mesh.cp * mesh.tp),
        }
        return folded[axis]() if axis in folded else mesh.degrees[axis]
