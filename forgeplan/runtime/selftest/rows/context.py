"""Which rows divide the sequences?"""

from __future__ import annotations

from forgeplan.plan.mesh import Mesh
from forgeplan.runtime.selftest.row import Row
from forgeplan.runtime.selftest.rows.shapes import (
    DROPPING,
    HALF,
    NORMED,
    ODD_ONE_OUT,
    WHOLE_SEQUENCE,
)

CP2, CP4 = Mesh(cp=2), Mesh(cp=4)
RING = {"cp": {"attention": "ring"}}
RING_IN_ORDER = {"cp": {"attention": "ring", "balance": "none"}}
CONTEXT = [
    Row("cp 2", CP2),
    Row("cp 2, in order", CP2, axes={"cp": {"balance": "none"}}, packed=True),
    Row("cp 4, packed, q/k norm", CP4, model=NORMED, packed=True),
    Row("cp 2, dropout, window, soft cap", CP2, model=ODD_ONE_OUT | DROPPING, recompute="full", quick=True),
    Row("cp 2, z-loss, tied", CP2, z=HALF, model={"tie": True}),
    Row("fsdp 2, cp 2", Mesh(dp_shard=2, cp=2), accumulation=2, packed=True),
    Row("two replicas, cp 2", Mesh(dp_replicate=2, cp=2), accumulation=2, quick=True),
    Row("tp 2, cp 2", Mesh(cp=2, tp=2), packed=True, quick=True),
    Row("tp 2, cp 2, whole sequence, dropout", Mesh(cp=2, tp=2), axes=WHOLE_SEQUENCE, model=DROPPING),
    Row("fsdp 2, tp 2, cp 2", Mesh(dp_shard=2, cp=2, tp=2), model=NORMED, packed=True),
    Row("cp 2, ring", CP2, axes=RING),
    Row("cp 2, ring, in order, by the definition", CP2, axes=RING_IN_ORDER, model={"attention": "math"}),
    Row("cp 4, ring, q/k norm", CP4, axes=RING, model=NORMED),
    Row(
        "fsdp 2, cp 2, ring, recompute", Mesh(dp_shard=2, cp=2), axes=RING, accumulation=2, recompute="full", quick=True
    ),
    Row("tp 2, cp 2, ring", Mesh(cp=2, tp=2), axes=RING),
]
