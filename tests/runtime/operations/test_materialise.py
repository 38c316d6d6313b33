"""Is memory where it is used?"""

from __future__ import annotations

from fractions import Fraction

import torch
from attrs import evolve

from forgeplan.plan.mesh import Mesh
from forgeplan.plan.operations import Build, Fsdp, Materialise
from forgeplan.runtime.executor import Bundle
from forgeplan.runtime.meshes import Meshes
from forgeplan.runtime.parallel.placed import placed
from forgeplan.runtime.registry import implementation
from forgeplan.spec.router.routers import SigmoidTopk
from tests.runtime.tiny import decoder, execution_plan, moe

DEVICE = torch.device("meta")
"""Stands for any that is not the host's memory."""


def places(mesh: Mesh, *, offload: bool) -> tuple[set[str], set[str]]:
    """Device types of parameters and of buffers."""
    model = decoder(moe=moe(router=SigmoidTopk(scale=Fraction(1), rate=Fraction("1e-3"), rate_schedule="constant")))
    plan = execution_plan(model=model, mesh=mesh)
    program = tuple(evolve(op, offload=offload) if isinstance(op, Fsdp) else op for op in plan.program)
    meshes = Meshes(mesh, 0, "cpu")
    bundle = Bundle(evolve(plan, program=program), DEVICE, meshes, placed(plan, meshes) if mesh.world == 1 else {})
    for kind in (Build, Materialise):
        operation = next(op for op in program if isinstance(op, kind))
        implementation("operation", operation)(operation, bundle)
    parameters, buffers = list(bundle.model.parameters()), list(bundle.model.buffers())
    assert parameters
    assert buffers
    return {p.device.type for p in parameters}, {b.device.type for b in buffers}


def test_offloaded_parameters_begin_in_host_memory_and_buffers_on_the_device() -> None:
    """FSDP refuses to offload what is on a device, at the first forward."""
    assert places(Mesh(dp_shard=2), offload=True) == ({"cpu"}, {"meta"})
    assert places(Mesh(dp_shard=2), offload=False) == ({"meta"}, {"meta"})


def test_without_data_ranks_nothing_is_offloaded() -> None:
    """Then no unit of FSDP would bring parameters to the device."""
    assert places(Mesh(), offload=True) == ({"meta"}, {"meta"})
