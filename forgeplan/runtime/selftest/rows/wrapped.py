"""Which rows compute activations again, or compile blocks?"""

from __future__ import annotations

from typing import Any

from forgeplan.plan.mesh import Mesh
from forgeplan.runtime.selftest.row import Row
from forgeplan.runtime.selftest.rows.pipeline import PP2, stages
from forgeplan.runtime.selftest.rows.shapes import DROPPING, FSDP2, HALF, HSDP, NORMED, TP2, WHOLE_SEQUENCE
from forgeplan.runtime.selftest.tiny import moe

CP2 = Mesh(cp=2)
EP2 = Mesh(dp_shard=2, ep=2)
EXPERTS_TWICE = Mesh(dp_replicate=2, tp=2, ep=2)
RING = {"cp": {"attention": "ring"}}
RING_IN_ORDER = {"cp": {"attention": "ring", "balance": "none"}}
TWO_STAGES = stages("one_f_one_b")
FOUR_STAGES = stages("interleaved", layers=4)
EXPERTS = {"moe": moe(shared=1, capacity=2)}
COMPILED: dict[str, dict[str, Any]] = {"compile": {"backend": "aot_eager"}}
WHOLE: dict[str, dict[str, Any]] = {"compile": {"backend": "aot_eager", "fullgraph": True}}
AS_WRITTEN: dict[str, dict[str, Any]] = {"compile": {"backend": "eager"}}
BUDGET = COMPILED | {"recompute": {"mode": "budget", "budget": 300, "blocks": ("layers.0", "layers.1")}}

RECOMPUTE = [
    Row("selective, one process, four microbatches", recompute="selective", accumulation=4),
    Row("selective, fsdp 2, packed, q/k norm", FSDP2, model=NORMED, packed=True, recompute="selective", quick=True),
    Row("selective, tp 2", TP2, recompute="selective"),
    Row("selective, tp 2, whole sequence", TP2, recompute="selective", axes=WHOLE_SEQUENCE),
    Row("selective, cp 2, ring", CP2, recompute="selective", axes=RING),
    Row("selective, pp 2", PP2, recompute="selective", axes=TWO_STAGES, accumulation=4),
    Row("selective, ep 2, capacity", EP2, model=EXPERTS, recompute="selective"),
    Row("selective, experts, replicas of tp 2", EXPERTS_TWICE, model=EXPERTS, recompute="selective", reshard="never"),
    Row("every second block, hsdp 2x2", HSDP, recompute="every", accumulation=2),
    Row("every second block, tp 2, experts", TP2, model=EXPERTS, recompute="every"),
    Row("every second block, ep 2", EP2, model=EXPERTS, recompute="every"),
    Row("every second block, cp 2, ring", CP2, recompute="every", axes=RING),
    Row("every second block, pp 2", PP2, recompute="every", axes=TWO_STAGES, accumulation=4),
    Row("recompute, pp 2", PP2, recompute="full", axes=TWO_STAGES, accumulation=4),
    Row("recompute, cp 2, ring", CP2, recompute="full", axes=RING),
]
COMPILE = [
    Row("compiled, one process, packed", transforms=WHOLE, packed=True, accumulation=2, z=HALF, quick=True),
    Row("compiled, fsdp 2, dropout", FSDP2, model=DROPPING, transforms=WHOLE, accumulation=2),
    Row("compiled, fsdp 2, recompute", FSDP2, transforms=WHOLE, recompute="full"),
    Row("compiled, fsdp 2, selective", FSDP2, transforms=WHOLE, recompute="selective"),
    Row("compiled, fsdp 2, memory budget", FSDP2, transforms=BUDGET),
    Row("compiled, tp 2, memory budget", TP2, transforms=BUDGET),
    Row("compiled, pp 2, memory budget", PP2, transforms=BUDGET, axes=TWO_STAGES, accumulation=4),
    Row("compiled, cp 2, ring, memory budget", CP2, transforms=BUDGET, axes=RING),
    Row("compiled, experts on fsdp 2, memory budget", EP2, model=EXPERTS, transforms=BUDGET),
    Row("compiled as written, fsdp 2, packed", FSDP2, transforms=AS_WRITTEN, packed=True, accumulation=2),
    Row("compiled, tp 2", TP2, transforms=WHOLE),
    Row("compiled, cp 2, ring, in order", CP2, transforms=WHOLE, axes=RING_IN_ORDER),
    Row("compiled, cp 2, ring, in order, recompute", CP2, recompute="full", transforms=WHOLE, axes=RING_IN_ORDER),
    Row("compiled, cp 2, ring", CP2, transforms=WHOLE, axes=RING),
    Row("compiled, cp 2, selective", CP2, transforms=WHOLE, recompute="selective"),
    Row("compiled, pp 2, interleaved", PP2, model={"layers": 4}, transforms=WHOLE, axes=FOUR_STAGES, accumulation=4),
    Row("compiled, ep 2, capacity", EP2, model=EXPERTS, transforms=COMPILED),
    Row("compiled, ep 2, capacity, recompute", EP2, model=EXPERTS, transforms=COMPILED, recompute="full"),
    Row("compiled, ep 2, capacity, selective", EP2, model=EXPERTS, transforms=COMPILED, recompute="selective"),
]
