"""Which rows divide every weight matrix of a layer?"""

from __future__ import annotations

from forgeplan.plan.mesh import Mesh
from forgeplan.runtime.selftest.row import Row
from forgeplan.runtime.selftest.rows.shapes import (
    DROPPING,
    FULL,
    HALF,
    MULTI_QUERY,
    REPLICATED,
    TP2,
    TP4,
    WHOLE_SEQUENCE,
)

TENSOR = [
    Row("tp 2", TP2),
    Row("tp 2, whole sequence", TP2, axes=WHOLE_SEQUENCE),
    Row("tp 4, replicated kv heads", TP4, axes=REPLICATED),
    Row("tp 4, one kv head, q/k norm, tied, packed", TP4, axes=REPLICATED, model=MULTI_QUERY, packed=True),
    Row(
        "tp 2, whole sequence, one kv head, q/k norm, tied",
        TP2,
        axes={"tp": {"sequence": False, "kv": "replicate"}},
        model=MULTI_QUERY,
    ),
    Row("tp 2, biases, layer norm, q/k norm", TP2, model=FULL, accumulation=4),
    Row("tp 2, whole sequence, biases, layer norm, q/k norm", TP2, model=FULL, axes=WHOLE_SEQUENCE),
    Row("tp 2, tied, recompute", TP2, model={"tie": True}, recompute="full", quick=True),
    Row("tp 2, dropout, recompute", TP2, model=DROPPING, recompute="full"),
    Row("tp 2, uneven vocabulary", TP2, model={"vocab": 5, "pad_vocab": 12}),
    Row("tp 2, z-loss", TP2, z=HALF, packed=True),
    Row("fsdp 2, tp 2", Mesh(dp_shard=2, tp=2), accumulation=2),
    Row(
        "fsdp 2, tp 2, tied, q/k norm, packed, recompute",
        Mesh(dp_shard=2, tp=2),
        model={"tie": True, "qk_norm": True},
        packed=True,
        recompute="full",
        quick=True,
    ),
    Row("two replicas, tp 2", Mesh(dp_replicate=2, tp=2), quick=True),
    Row("hsdp 2x2, tp 2", Mesh(dp_replicate=2, dp_shard=2, tp=2)),
    Row("fsdp 4, tp 2, reshard over 2", Mesh(dp_shard=4, tp=2), reshard=2),
]
