"""How are the experts of a layer dealt to ranks?"""

from __future__ import annotations

from attrs import evolve
from torch.distributed.device_mesh import init_device_mesh

from forgeplan.diagnostics.refusal import InternalError
from forgeplan.plan.operations import Ep
from forgeplan.runtime.executor import Bundle
from forgeplan.runtime.parallel.axes import ExpertParallel
from forgeplan.runtime.parallel.collectives import Group
from forgeplan.runtime.parallel.cutting import cut_weights
from forgeplan.runtime.registry import executes


@executes(Ep)
def ep(operation: Ep, bundle: Bundle) -> None:
    """Leave each rank its run of every stack of experts, and let layers send tokens to the ranks of their experts."""
    group = bundle.meshes.group("ep")
    inside, between = _by_node(bundle) if operation.hierarchical else (None, None)
    cut_weights(bundle, lambda cut: cut.ep)
    bundle.use(evolve(bundle.axes, ep=ExpertParallel(group, inside, between)))


def _by_node(bundle: Bundle) -> tuple[Group | None, Group | None]:
    """The group's ranks on this rank's node, and those with its place on the other nodes; None within one node.

    The ranks of a group are neighbours, and so are those of a node. Collective over all ranks.
    """
    mesh, places = bundle.plan.mesh, bundle.plan.job.cluster.devices_per_node
    if places % mesh.ep == 0:
        return None, None
    if mesh.ep % places:
        raise InternalError(f"{mesh.ep} expert ranks lie unevenly on nodes of {places}")
    shape = (mesh.world // mesh.ep, mesh.ep // places, places)
    grid = init_device_mesh(bundle.device.type, shape, mesh_dim_names=("outer", "between", "inside"))
    inside, between = grid["inside"], grid["between"]
    return (
        Group(places, inside.get_local_rank(), inside.get_group()),
        Group(mesh.ep // places, between.get_local_rank(), between.get_group()),
    )
