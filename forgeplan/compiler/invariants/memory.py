"""Do the model states fit the devices?"""

from __future__ import annotations

from collections.abc import Iterator
from math import gcd

from attrs import evolve

from forgeplan.compiler.facts import Fact, Facts
from forgeplan.compiler.invariants.registry import Finding, divisors, invariant, legal
from forgeplan.compiler.passes.shards import ALL_UNITS, Shards, shards_of
from forgeplan.compiler.wording import bytes_text
from forgeplan.diagnostics.diagnostic import Label

MOST_RANKS = 131_072


@invariant("FP0901", "parameters, gradients and optimizer state of every rank fit into its device")
def states_fit_the_device(facts: Facts) -> Iterator[Finding]:
    hbm = facts.get("cluster.hbm")
    if hbm is None or hbm.value is None:
        return
    shards = facts.results("shards")
    if shards.device_bytes < hbm.value:
        return
    place = facts.place("model")
    replicas = [d for d in divisors(facts["cluster.devices"].value) if d < facts["mesh.dp_replicate"].value]
    offloads = facts.results("layout").offloads
    what = "its states being offloaded" if offloads else "for model states alone"
    yield states_fit_the_device.at(
        f"a rank needs {bytes_text(shards.device_bytes)} {what}, and its device has {bytes_text(hbm.value)}",
        Label(place, f"{facts['model.params'].value:,} parameters"),
        hbm,
        *_axes(facts),
        legal=(
            legal(facts, "mesh.dp_replicate", replicas),
            legal(facts, "precision.moments", [] if offloads else _narrower(facts["precision.moments"].value)),
            legal(facts, "apply.fsdp.offload", [] if offloads else [True]),
        ),
        help=_ranks_that_fit(facts, hbm.value),
        notes=(_rows(shards),),
    )


def _axes(facts: Facts) -> list[Fact]:
    """The axes that data ranks come from, and all others that divide the model."""
    others = [axis for axis in ("pp", "tp", "cp", "ep") if facts[f"mesh.{axis}"].value > 1]
    return [facts[f"mesh.{axis}"] for axis in ("dp_shard", "dp_replicate", *others)]


def _ranks_that_fit(facts: Facts, hbm: int) -> Iterator[str]:
    """A degree of dp_shard with which they fit, all else held, and with the next smaller one not.

    More ranks mostly hold less each, but not always: experts that are too few for their ranks are whole on some.
    """
    model, precision, moments = facts.block("model"), facts.block("precision"), facts.block("optimizer").num_moments
    layout = facts.results("layout")
    mesh = layout.mesh
    step = mesh.ep // gcd(mesh.ep, mesh.cp * mesh.tp)

    def fits(steps: int) -> bool:
        wider = evolve(layout, mesh=evolve(mesh, dp_replicate=1, dp_shard=steps * step))
        return shards_of(model, wider, precision, moments).device_bytes < hbm

    too_few, enough = 0, 1
    while not fits(enough):
        too_few, enough = enough, 2 * enough
        if enough * step > MOST_RANKS:
            yield f"they would not fit with any mesh.dp_shard up to {MOST_RANKS:,} either"
            return
    while enough - too_few > 1:
        middle = (too_few + enough) // 2
        too_few, enough = (too_few, middle) if fits(middle) else (middle, enough)
    devices = mesh.pp * enough * step * mesh.cp * mesh.tp
    on = f"on {devices:,} devices " if devices > facts["cluster.devices"].value else ""
    yield f"they fit {on}with mesh.dp_shard = {enough * step:,}"


def _rows(shards: Shards) -> str:
    unit = shards.gathered_unit
    gathered = "all its units, gathered" if unit == ALL_UNITS else f"the largest unit gathered ({unit})"
    rows = {**shards.resident._asdict(), gathered: shards.gathered_bytes}
    return ", ".join(f"{name} {bytes_text(size)}" for name, size in rows.items() if size)


def _narrower(dtype: str) -> list[str]:
    return {"fp64": ["fp32", "bf16"], "fp32": ["bf16"]}.get(dtype, [])
