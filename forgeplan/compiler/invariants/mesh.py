"""Do the degrees of the mesh fit the devices?"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

from forgeplan.compiler.facts import Fact, Facts
from forgeplan.compiler.invariants.registry import Finding, divisors, invariant, legal
from forgeplan.compiler.wording import plural
from forgeplan.plan.mesh import AXES

WHOLE_CLUSTER = ("cluster.nodes", "cluster.devices_per_node")


@invariant("FP0401", "the degrees of the mesh multiply to the number of devices")
def degrees_fill_the_devices(facts: Facts) -> Iterator[Finding]:
    axes, devices = [facts[f"mesh.{axis}"] for axis in AXES], facts["cluster.devices"].value
    product = prod(axis.value for axis in axes)
    if facts["mesh.dp_shard"].is_auto or product == devices:
        return
    repairs = []
    for axis in _written_first(axes):
        others = product // axis.value
        also = ", or `auto`" if axis.path == "mesh.dp_shard" else ""
        repairs.append(legal(facts, axis.path, [devices // others] if devices % others == 0 else [], also=also))
    open_ended = ("or leave one degree to the compiler: mesh.dp_shard = auto",)
    yield degrees_fill_the_devices.at(
        f"the mesh has {_product(axes)}{plural(product, 'rank')}, and the cluster has {plural(devices, 'device')}",
        *_written_first(axes),
        *(facts[path] for path in WHOLE_CLUSTER),
        legal=repairs,
        help=() if any(found.values for found in repairs) else open_ended,
        notes=_experts_fold(facts),
    )


@invariant("FP0402", "the devices left to `dp_shard = auto` are a whole number")
def devices_left_to_auto(facts: Facts) -> Iterator[Finding]:
    axes, devices = [facts[f"mesh.{axis}"] for axis in AXES if axis != "dp_shard"], facts["cluster.devices"].value
    product = prod(axis.value for axis in axes)
    quotient, rest = divmod(devices, product)
    if not facts["mesh.dp_shard"].is_auto or not rest:
        return
    repairs = []
    for axis in (axis for axis in _written_first(axes) if axis.value > 1):
        left, uneven = divmod(devices, product // axis.value)
        repairs.append(legal(facts, axis.path, [] if uneven else divisors(left)))
    yield devices_left_to_auto.at(
        f"{plural(devices, 'device')} {'is' if devices == 1 else 'are'} no multiple of the other degrees, "
        f"{_product(axes)}{product:,}: {devices:,} ÷ {product:,} = {quotient:,} remainder {rest:,}",
        *_written_first(axes),
        *(facts[path] for path in WHOLE_CLUSTER),
        legal=repairs,
        notes=_experts_fold(facts),
    )


def _written_first(axes: list[Fact]) -> list[Fact]:
    """Axes that somebody wrote before those that nobody did; of both `dp_shard` first, as it mostly follows."""
    return sorted(axes, key=lambda axis: (not axis.written, axis.path != "mesh.dp_shard"))


def _product(axes: list[Fact]) -> str:
    """`dp_shard · tp = 4 · 2 = `: the axes above 1."""
    above = [axis for axis in axes if axis.value > 1]
    names = " · ".join(axis.path.rpartition(".")[2] for axis in above)
    values = " · ".join(f"{axis.value:,}" for axis in above)
    return f"{names} = {values} = " if len(above) > 1 else f"{names} = " if above else ""


def _experts_fold(facts: Facts) -> Iterator[str]:
    ep = facts["mesh.ep"]
    if ep.value > 1:
        yield f"{ep.equation} is no factor: groups of experts fold into dp_shard · cp · tp"
