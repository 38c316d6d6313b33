"""How many devices does the cluster have?"""

from __future__ import annotations

from forgeplan.compiler.derived import derived
from forgeplan.spec.types import COUNT


@derived("cluster.devices", COUNT, "cluster.nodes", "cluster.devices_per_node")
def devices(nodes: int, devices_per_node: int) -> int:
    """Devices (ranks) of all nodes."""
    return nodes * devices_per_node
