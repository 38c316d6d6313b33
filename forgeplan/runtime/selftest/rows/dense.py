"""Which rows divide data and weights over replicas and FSDP shards, and which features of training do they have?"""

from __future__ import annotations

from fractions import Fraction

from forgeplan.runtime.selftest.row import Row
from forgeplan.runtime.selftest.rows.shapes import (
    DROPPING,
    FSDP2,
    FSDP4,
    HALF,
    HSDP,
    MULTI_QUERY,
    NORMED,
    ODD_ONE_OUT,
    RAGGED,
    REPLICAS,
)
from forgeplan.runtime.selftest.tiny import steps
from forgeplan.spec.schedule.shapes import Constant, Cosine, Linear, Rex, Wsd

LAYOUTS = [
    Row("one process, one microbatch"),
    Row("one process, four microbatches", accumulation=4, quick=True),
    Row("one process, recompute", recompute="full"),
    Row("fsdp 2", FSDP2),
    Row("fsdp 2, four microbatches", FSDP2, accumulation=4),
    Row("fsdp 2, recompute", FSDP2, recompute="full"),
    Row("fsdp 4", FSDP4),
    Row("fsdp 4, two microbatches, recompute", FSDP4, accumulation=2, recompute="full"),
    Row("hsdp 2x2", HSDP),
    Row("hsdp 2x2, two microbatches", HSDP, accumulation=2, quick=True),
    Row("two replicas", REPLICAS),
    Row("two replicas, two microbatches", REPLICAS, accumulation=2),
    Row("fsdp 2, always reshard", FSDP2, reshard="always", accumulation=2),
    Row("fsdp 2, never reshard", FSDP2, reshard="never", accumulation=2),
    Row("fsdp 4, reshard over 2", FSDP4, reshard=2, recompute="full"),
]
MODELS = [
    Row("tied, one process", model={"tie": True}, accumulation=2),
    Row("tied, fsdp 2, recompute", FSDP2, model={"tie": True}, recompute="full"),
    Row("tied, fsdp 4, two microbatches", FSDP4, model={"tie": True}, accumulation=2),
    Row("q/k norm, fsdp 2, packed", FSDP2, model=NORMED, packed=True, accumulation=2, quick=True),
    Row("q/k norm, hsdp, packed, recompute", HSDP, model=NORMED, packed=True, recompute="full"),
    Row("one kv head, q/k norm, tied, fsdp 4", FSDP4, model=MULTI_QUERY),
    Row("uneven shapes, one process", model=RAGGED, accumulation=4),
    Row("uneven shapes, fsdp 4, two microbatches", FSDP4, model=RAGGED, accumulation=2),
    Row("dropout, one process, four microbatches", model=DROPPING, accumulation=4),
    Row("dropout, fsdp 2, recompute", FSDP2, model=DROPPING, recompute="full", accumulation=2),
    Row("gelu, window, soft cap, padded vocabulary, fsdp 2", FSDP2, model=ODD_ONE_OUT),
]
LOSSES = [
    Row("z-loss, one process, four microbatches", accumulation=4, z=HALF),
    Row("z-loss, fsdp 4, packed, recompute", FSDP4, packed=True, recompute="full", z=HALF),
    Row("z-loss, hsdp 2x2, tied, two microbatches", HSDP, accumulation=2, model={"tie": True}, z=HALF),
]
FLOOR = Fraction("0.1")
SCHEDULES = [
    Row("linear", FSDP2, schedule=Linear(warmup=steps(0), floor=FLOOR)),
    Row("rex", FSDP2, schedule=Rex(warmup=steps(2), floor=FLOOR)),
    Row("wsd", FSDP2, schedule=Wsd(warmup=steps(1), decay=steps(3), shape="sqrt", floor=FLOOR)),
    Row("constant", FSDP2, schedule=Constant(warmup=steps(3))),
    Row("no schedule", FSDP2, schedule=None),
    Row("cosine without warm-up", schedule=Cosine(warmup=steps(0), floor=Fraction(0))),
]
SINGLE = [
    Row("fp32, one process", dtype="fp32", accumulation=4),
    Row("fp32, fsdp 2", FSDP2, dtype="fp32", recompute="full", quick=True),
    Row("fp32, hsdp 2x2, tied", HSDP, dtype="fp32", model={"tie": True}, accumulation=2),
]
