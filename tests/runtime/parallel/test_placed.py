"""Is the global view of a parameter its memory, wherever that is?"""

from __future__ import annotations

import torch
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.tensor import DTensor, Shard

from forgeplan.plan.mesh import Mesh
from forgeplan.plan.sharding import division
from forgeplan.runtime.parallel.placed import Placed
from forgeplan.spec.cut import Cut


def test_the_view_of_what_is_in_host_memory_is_no_copy_on_the_device_of_the_mesh() -> None:
    """Parameters that FSDP offloads are on the CPU, whatever their mesh is of; a checkpoint is loaded into the view."""
    split = division((6, 4), Cut(), Mesh(dp_shard=2), sequence=True, kv="error")
    names = ("dp_replicate", "fsdp", "tp")
    mesh = DeviceMesh("cuda", torch.arange(2).view(1, 2, 1), mesh_dim_names=names, _init_backend=False, _rank=0)
    part = torch.zeros(3, 4)
    view = Placed("weight", split, split.slices(0, 0), mesh).view(part)
    assert isinstance(view, DTensor)
    assert view.shape == (6, 4)
    assert view.stride() == (4, 1)
    assert view.placements[1] == Shard(0)
    view.to_local().fill_(7)
    assert part.tolist() == [[7.0] * 4] * 3
