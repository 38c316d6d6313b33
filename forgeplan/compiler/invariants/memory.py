"""Do the model states fit the devices?"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from forgeplan.compiler.facts import Facts
from forgeplan.compiler.invariants.registry import Finding, divisors, invariant, legal
from forgeplan.compiler.passes.shards import shards_of
from forgeplan.compiler.wording import bytes_text
from forgeplan.diagnostics.diagnostic import Label
from forgeplan.plan.mesh import Mesh

MOST_RANKS = 131_072


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
        Label(place, f"{facts['model.params'].value:,} parameters"),
        hbm,
        facts["mesh.dp_shard"],
        facts["mesh.dp_replicate"],
        legal=(
            legal(facts, "mesh.dp_replicate", replicas),
            legal(facts, "precision.moments", _narrower(facts["precision.moments"].value)),
        ),
        help=_ranks_that_fit(facts, hbm.value),
        notes=(_rows(shards),),
    )


def _ranks_that_fit(facts: Facts, hbm: int) -> Iterator[str]:
    """The least number of ranks to shard over, all else held, by bisection: more ranks never hold more each."""
    model, precision, moments = facts.block("model"), facts.block("precision"), facts.block("optimizer").num_moments

    def fits(ranks: int) -> bool:
        shards = shards_of(model, Mesh(dp_shard=ranks), precision, moments)
        return bool(shards.largest.state_bytes + shards.gathered_bytes < hbm)

    too_few, enough = 1, MOST_RANKS
    if not fits(enough):
        yield f"the largest unit alone does not fit, and sharding does not help beyond {MOST_RANKS:,} ranks"
        return
    while enough - too_few > 1:
        middle = (too_few + enough) // 2
        too_few, enough = (too_few, middle) if fits(middle) else (middle, enough)
    yield f"sharded over {enough:,} ranks or more (mesh.dp_shard), they fit"


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
