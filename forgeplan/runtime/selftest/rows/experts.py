"""Which rows have experts, on one rank or dealt to many?"""

from __future__ import annotations

from fractions import Fraction

from forgeplan.plan.mesh import Mesh
from forgeplan.runtime.selftest.row import Row
from forgeplan.runtime.selftest.rows.shapes import (
    FSDP2,
    TP2,
    WHOLE_SEQUENCE,
)
from forgeplan.runtime.selftest.tiny import moe
from forgeplan.spec.router.routers import SigmoidTopk, SoftmaxTopk

ROUTED = {"moe": moe()}
SHARED = {"moe": moe(shared=1, balance=Fraction("0.01"), z=Fraction("0.001"), router=SoftmaxTopk(renormalise=False))}
BIASED = {
    "moe": moe(
        router=SigmoidTopk(scale=Fraction("2.5"), rate=Fraction("0.01"), rate_schedule="constant"),
        groups=4, group_limit=2, shared=1, sequence_balance=Fraction("0.01"),
    )
}  # fmt: skip
CROWDED = {"moe": moe(capacity=Fraction(1), balance=Fraction("0.1"))}
SCALED = {"moe": moe(scale_gradients=True, first_dense=1)}
FURTHER = {"moe": moe(every=2), "mtp": 2}
EP2, EP4 = Mesh(dp_shard=2, ep=2), Mesh(dp_shard=4, ep=4)
EXPERTS = [
    Row("experts, one process, four microbatches", model=SHARED, accumulation=4),
    Row("experts, fsdp 2, recompute", FSDP2, model=BIASED, recompute="full", accumulation=2),
    Row("ep 2", EP2, model=ROUTED),
    Row("ep 2, shared expert, losses, recompute", EP2, model=SHARED, accumulation=2, recompute="full", quick=True),
    Row("ep 2, capacity, packed", EP2, model=CROWDED, accumulation=2, packed=True),
    Row("ep 4, balanced by bias, groups", EP4, model=BIASED, accumulation=2),
    Row("ep 4, inside nodes and between", EP4, model=SHARED, axes={"ep": {"hierarchical": True}}, nodes=2),
    Row("fsdp 4, ep 2, scaled gradients", Mesh(dp_shard=4, ep=2), model=SCALED),
    Row("hsdp 2x2, ep 2", Mesh(dp_replicate=2, dp_shard=2, ep=2), model=BIASED, quick=True),
    Row("fsdp 8, ep 2, reshard over 2", Mesh(dp_shard=8, ep=2), model=BIASED, reshard=2),
    Row("tp 2, experts", TP2, model=SHARED),
    Row("tp 2, experts, whole sequence", TP2, model=BIASED, axes=WHOLE_SEQUENCE, accumulation=2),
    Row("tp 2, capacity", TP2, model=CROWDED),
    Row("tp 2, ep 2", Mesh(tp=2, ep=2), model=BIASED, recompute="full", quick=True),
    Row("tp 2, ep 4 over fsdp 2", Mesh(dp_shard=2, tp=2, ep=4), model=SHARED),
    Row("cp 2, ep 2, capacity", Mesh(cp=2, ep=2), model=CROWDED, packed=True, quick=True),
    Row("cp 2, ep 2, bias", Mesh(cp=2, ep=2), model=BIASED),
    Row("cp 2, tp 2, ep 2, losses", Mesh(cp=2, tp=2, ep=2), model=SHARED),
    Row("further tokens, fsdp 2, packed, recompute", FSDP2, model=FURTHER, packed=True, recompute="full", quick=True),
    Row("further tokens, tp 2, ep 2", Mesh(tp=2, ep=2), model=FURTHER),
    Row("further tokens, dense, tied, fsdp 2", FSDP2, model={"mtp": 1, "tie": True}, accumulation=2),
]
