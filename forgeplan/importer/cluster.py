"""On how many machines does a layout run, where the source says only its degrees?"""

from __future__ import annotations

from collections.abc import Mapping
from math import gcd, prod

from attrs import frozen

from forgeplan.diagnostics.refusal import UsageError
from forgeplan.diagnostics.source import Source
from forgeplan.diagnostics.suggest import did_you_mean, nearest
from forgeplan.dsl import syntax
from forgeplan.dsl.library import STD
from forgeplan.dsl.parser import parse
from forgeplan.importer.rules import Importing


@frozen
class World:
    """Machines, devices, and the number of ranks that shard parameters."""

    nodes: int
    devices_per_node: int
    dp_shard: int

    @property
    def ranks(self) -> int:
        return self.nodes * self.devices_per_node


def place(this: Importing, others: Mapping[str, int], dp_shard: int | None, why: str) -> World:
    """Machines for the degrees `others` and `dp_shard`, None where the source leaves that open; writes `cluster`.

    `why` says why their number may be open. Raises UsageError where what the command line says does not fit.
    """
    options, fixed = this.options, prod(others.values())
    world = _open(this, fixed, why) if dp_shard is None else _closed(this, fixed * dp_shard, dp_shard)
    name = this.draft.use("std:clusters", options.cluster)
    this.draft.root.at("cluster").text = name
    this.draft.set("cluster.nodes", str(world.nodes))
    this.draft.set("cluster.devices_per_node", str(world.devices_per_node))
    return world


def _closed(this: Importing, ranks: int, dp_shard: int) -> World:
    """The degrees say how many ranks there are."""
    options = this.options
    if options.nodes and ranks % options.nodes:
        raise UsageError(f"{this.file} is for {ranks} ranks, which --nodes {options.nodes} does not divide")
    if options.devices_per_node and ranks % options.devices_per_node:
        per = options.devices_per_node
        raise UsageError(f"{this.file} is for {ranks} ranks, which --devices-per-node {per} does not divide")
    most = devices_of(options.cluster)
    if options.nodes:
        per = ranks // options.nodes
    else:
        per = options.devices_per_node or max(n for n in range(1, most + 1) if ranks % n == 0)
    if options.nodes and options.devices_per_node and per != options.devices_per_node:
        asked = options.nodes * options.devices_per_node
        raise UsageError(f"{this.file} is for {ranks} ranks, and the command line asks for {asked}")
    if not (options.nodes or options.devices_per_node):
        this.assumed.append(
            f"machines: {_machines(ranks // per, per)} ({options.cluster}), as the degrees multiply to {ranks} ranks;"
            " --nodes, --devices-per-node and --cluster say otherwise"
        )
    return World(ranks // per, per, dp_shard)


def _open(this: Importing, fixed: int, why: str) -> World:
    """As many ranks as there are: the source runs on any multiple of `fixed`."""
    options = this.options
    per = options.devices_per_node or devices_of(options.cluster)
    step = fixed // gcd(fixed, per)
    nodes = options.nodes or -(-options.least_nodes // step) * step
    if (nodes * per) % fixed:
        raise UsageError(
            f"{this.file} needs a multiple of {fixed} ranks, and {_machines(nodes, per)} have {nodes * per}"
        )
    if options.nodes is None:
        this.is_open = True
        this.assumed.append(
            f"machines: {_machines(nodes, per)} ({options.cluster}), as few as hold the model: {why};"
            " --nodes, --devices-per-node and --cluster say otherwise, and so does --set cluster.nodes=… later"
        )
    return World(nodes, per, nodes * per // fixed)


def _machines(nodes: int, devices: int) -> str:
    return f"{nodes} × {devices} device{'s' * (devices > 1)}"


def devices_of(cluster: str) -> int:
    """Devices of one machine of a cluster of the library. Raises UsageError for a name it does not have."""
    known = clusters()
    if cluster not in known:
        meant = nearest(cluster, known)
        rest = did_you_mean(meant) if meant else f"these are: {', '.join(known)}"
        raise UsageError(f"std:clusters has no {cluster}; {rest}")
    return known[cluster]


def clusters() -> dict[str, int]:
    """Names of the clusters of the library, each with the devices of one machine."""
    path = STD / "clusters.forge"
    parsed = parse(Source("std:clusters", path.read_text(encoding="utf-8")))
    return {item.name.text: _devices(item.value) for item in parsed.file.items if isinstance(item, syntax.Let)}


def _devices(value: syntax.Expr) -> int:
    record = value.record if isinstance(value, syntax.Amend) else value
    items = record.items if isinstance(record, syntax.Record) else ()
    numbers = [
        int(item.value.amount)
        for item in items
        if isinstance(item, syntax.Assign)
        and item.path.names[-1].text == "devices_per_node"
        and isinstance(item.value, syntax.Number)
    ]
    return numbers[0] if numbers else 1
