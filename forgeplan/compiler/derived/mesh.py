"""What follows from the degrees of the axes?"""

from __future__ import annotations

from forgeplan.compiler.derived import derived
from forgeplan.spec.types import COUNT


@derived("mesh.dp_shard", COUNT, "cluster.devices", "mesh.dp_replicate")
def dp_shard(devices: int, dp_replicate: int) -> int:
    """The degree that the devices leave to sharding."""
    return max(1, devices // dp_replicate)


@derived("mesh.data_ranks", COUNT, "mesh.dp_replicate", "mesh.dp_shard")
def data_ranks(dp_replicate: int, dp_shard: int) -> int:
    """Ranks that read different sequences."""
    return dp_replicate * dp_shard


@derived("mesh.world", COUNT, "mesh.dp_replicate", "mesh.dp_shard")
def world(dp_replicate: int, dp_shard: int) -> int:
    """Product of all degrees, the number of ranks."""
    return dp_replicate * dp_shard
