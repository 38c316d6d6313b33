"""Do the degrees of the mesh fit the devices?"""

from __future__ import annotations

from collections.abc import Iterator

from forgeplan.compiler.facts import Facts
from forgeplan.compiler.invariants.registry import Finding, divisors, invariant, legal
from forgeplan.compiler.wording import plural


@invariant("FP0401", "the degrees of the mesh multiply to the number of devices")
def degrees_fill_the_devices(facts: Facts) -> Iterator[Finding]:
    replicate, shard, devices = facts["mesh.dp_replicate"], facts["mesh.dp_shard"], facts["cluster.devices"]
    product = replicate.value * shard.value
    if shard.is_auto or product == devices.value:
        return
    candidates = divisors(devices.value)
    yield degrees_fill_the_devices.at(
        f"the mesh has dp_replicate · dp_shard = {replicate.value:,} · {shard.value:,} = {plural(product, 'rank')}, "
        f"and the cluster has {plural(devices.value, 'device')}",
        shard,
        replicate,
        facts["cluster.nodes"],
        facts["cluster.devices_per_node"],
        legal=(
            legal(facts, "mesh.dp_shard", candidates, also=", or `auto`"),
            legal(facts, "mesh.dp_replicate", candidates),
        ),
    )


@invariant("FP0402", "the devices left to `dp_shard = auto` are a whole number")
def devices_left_to_auto(facts: Facts) -> Iterator[Finding]:
    replicate, shard, devices = facts["mesh.dp_replicate"], facts["mesh.dp_shard"], facts["cluster.devices"]
    quotient, rest = divmod(devices.value, replicate.value)
    if not shard.is_auto or not rest:
        return
    yield devices_left_to_auto.at(
        f"{plural(devices.value, 'device')} cannot be dealt to {plural(replicate.value, 'replica')}: "
        f"{devices.value:,} ÷ {replicate.value:,} = {quotient:,} remainder {rest:,}",
        replicate,
        facts["cluster.nodes"],
        facts["cluster.devices_per_node"],
        legal=(legal(facts, "mesh.dp_replicate", divisors(devices.value)),),
    )
