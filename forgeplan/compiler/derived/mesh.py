"""What follows from the degrees of the axes?"""

from __future__ import annotations

from math import prod

from forgeplan.compiler.derived import derived
from forgeplan.plan.mesh import AXES
from forgeplan.spec.types import COUNT


@derived("mesh.dp_shard", COUNT, "cluster.devices", "mesh.pp", "mesh.dp_replicate", "mesh.cp", "mesh.tp")
def dp_shard(devices: int, pp: int, dp_replicate: int, cp: int, tp: int) -> int:
    """The degree that the devices leave to sharding."""
    return max(1, devices // (pp * dp_replicate * cp * tp))


@derived("mesh.data_ranks", COUNT, "mesh.dp_replicate", "mesh.dp_shard")
def data_ranks(dp_replicate: int, dp_shard: int) -> int:
    """Ranks that read different sequences."""
    return dp_replicate * dp_shard


@derived("mesh.world", COUNT, *(f"mesh.{axis}" for axis in AXES))
def world(*degrees: int) -> int:
    """Product of the degrees of all axes, the number of ranks; experts fold into them."""
    return prod(degrees)
