"""Do the model states fit the devices?"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from forgeplan.compiler.facts import Facts
from forgeplan.compiler.invariants.registry import Finding, divisors, invariant, legal
from forgeplan.compiler.wording import bytes_text
from forgeplan.diagnostics.diagnostic import Label


@invariant("FP0901", "parameters, gradients and optimizer state of every rank fit into its device")
def states_fit_the_device(facts: Facts) -> Iterator[Finding]:
    hbm = facts.get("cluster.hbm")
    if hbm is None or hbm.value is None:
        return
    shards = facts.results("shards")
    largest = shards.largest
    needed = largest.state_bytes + shards.gathered_bytes
    if needed < hbm.value:
        return
    place = facts.place("model")
    replicas = [d for d in divisors(facts["cluster.devices"].value) if d < facts["mesh.dp_replicate"].value]
    yield states_fit_the_device.at(
        f"a rank needs {bytes_text(needed)} for model states alone, and its device has {bytes_text(hbm.value)}",
        hbm,
        Label(place, f"{facts['model.params'].value:,} parameters") if place else None,
        facts["mesh.dp_shard"],
        facts["mesh.dp_replicate"],
        legal=(
            legal(facts, "mesh.dp_replicate", replicas),
            legal(facts, "precision.moments", _narrower(facts["precision.moments"].value)),
        ),
        help=("more devices, sharded over all of them, need less on each",),
        notes=(_rows(shards),),
    )


def _rows(shards: Any) -> str:
    largest = shards.largest
    rows = {
        "parameters": largest.parameter_bytes,
        "gradients": largest.gradient_bytes,
        "optimizer": largest.optimizer_bytes,
        f"the largest unit gathered ({shards.gathered_unit})": shards.gathered_bytes,
    }
    return ", ".join(f"{name} {bytes_text(size)}" for name, size in rows.items() if size)


def _narrower(dtype: str) -> list[str]:
    return {"fp64": ["fp32", "bf16"], "fp32": ["bf16"]}.get(dtype, [])
