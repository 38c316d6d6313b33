"""Do the ranks that exchange most stand next to one another?"""

from __future__ import annotations

from collections.abc import Iterator
from math import lcm

from forgeplan.compiler.facts import Facts
from forgeplan.compiler.invariants.registry import Finding, divisors, legal, lint
from forgeplan.compiler.wording import plural


@lint("tp-crosses-node", "the tp ranks of a group are inside one node")
def tp_crosses_node(facts: Facts) -> Iterator[Finding]:
    nodes, devices, tp = facts["cluster.nodes"], facts["cluster.devices_per_node"], facts["mesh.tp"]
    if nodes.value == 1 or devices.value % tp.value == 0:
        return
    yield tp_crosses_node.at(
        f"{_crossing(devices.value, tp.value)}, and exchange activations in every layer at the speed of the network",
        tp,
        devices,
        nodes,
        legal=(legal(facts, "mesh.tp", divisors(devices.value)),),
    )


def _crossing(devices: int, tp: int) -> str:
    """Which groups cross: groups and nodes are aligned again after the least common multiple of both."""
    nodes = f"nodes of {plural(devices, 'device')}"
    if tp > devices:
        return f"groups of {tp:,} tp ranks stand on several {nodes}"
    period = lcm(devices, tp)
    return f"{period // devices - 1:,} of every {period // tp:,} groups of {tp:,} tp ranks stand on two {nodes}"
