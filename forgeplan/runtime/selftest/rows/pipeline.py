"""Which rows divide the layers into stages?"""

from __future__ import annotations

from typing import Any

from forgeplan.plan.mesh import Mesh
from forgeplan.plan.stages import cut_at, dealt
from forgeplan.runtime.selftest.row import Row
from forgeplan.runtime.selftest.rows.shapes import (
    DROPPING,
    HALF,
    NORMED,
    ODD_ONE_OUT,
    WHOLE_SEQUENCE,
)
from forgeplan.spec.operation.pp import ONE_STAGE
from forgeplan.spec.operation.pp import SCHEDULES as SCHEDULES_OF_PP


def stages(schedule: str, pp: int = 2, layers: int = 2, cuts: tuple[int, ...] = ()) -> dict[str, dict[str, Any]]:
    """Options of pp: layers dealt by weight, or cut. Two stages a rank where the schedule can."""
    per_rank = 1 if schedule in ONE_STAGE else 2
    made = cut_at(layers, cuts) if cuts else dealt(layers, pp * per_rank, 1, 1)
    return {"pp": {"schedule": schedule, "stages_per_rank": per_rank, "stages": made}}


PP2, PP4, PP2_FSDP2, PP2_TP2 = Mesh(pp=2), Mesh(pp=4), Mesh(pp=2, dp_shard=2), Mesh(pp=2, tp=2)
THREE, SIX = {"layers": 3}, {"layers": 6}
# Two layers in four stages: the embedding is a stage of its own, and so is the head. Sequences have very different
# numbers of counted labels: gradients divided by those of a microbatch, or by none, would be others (C037).
PIPELINE = [
    *(Row(f"pp 2, {schedule}", PP2, accumulation=4, axes=stages(schedule)) for schedule in SCHEDULES_OF_PP),
    Row("pp 2, 1f1b, two microbatches", PP2, accumulation=2, axes=stages("one_f_one_b")),
    Row(
        "pp 2, 1f1b, uneven layers, packed, q/k norm",
        PP2,
        accumulation=4,
        packed=True,
        model=THREE | NORMED,
        axes=stages("one_f_one_b", layers=3),
        quick=True,
    ),
    Row(
        "pp 2, interleaved, cuts, dropout, recompute",
        PP2,
        accumulation=4,
        recompute="full",
        model=THREE | DROPPING,
        axes=stages("interleaved", layers=3, cuts=(1, 2, 3)),
    ),
    Row(
        "pp 2, zbv, packed, dropout, z-loss, window",
        PP2,
        accumulation=4,
        packed=True,
        z=HALF,
        model=ODD_ONE_OUT | DROPPING,
        axes=stages("zbv"),
    ),
    Row("pp 2, zero bubble, recompute", PP2, accumulation=4, recompute="full", axes=stages("zero_bubble")),
    Row(
        "pp 4, interleaved, packed",
        PP4,
        accumulation=4,
        packed=True,
        model=SIX,
        axes=stages("interleaved", pp=4, layers=6),
    ),
    Row("pp 2, fsdp 2", PP2_FSDP2, accumulation=4, axes=stages("one_f_one_b")),
    Row("pp 2, fsdp 2, gpipe, recompute", PP2_FSDP2, accumulation=2, recompute="full", axes=stages("gpipe")),
    Row(
        "pp 2, fsdp 2, interleaved, packed",
        PP2_FSDP2,
        accumulation=4,
        packed=True,
        axes=stages("interleaved"),
        quick=True,
    ),
    Row("pp 2, fsdp 2, zero bubble", PP2_FSDP2, accumulation=4, reshard="never", axes=stages("zero_bubble")),
    Row("pp 2, fsdp 2, zbv, recompute", PP2_FSDP2, 4, "full", "never", axes=stages("zbv")),
    Row(
        "pp 2, two replicas, dualpipe_v",
        Mesh(pp=2, dp_replicate=2),
        4,
        None,
        "never",
        axes=stages("dualpipe_v"),
        quick=True,
    ),
    Row("pp 2, tp 2, dropout", PP2_TP2, accumulation=4, model=DROPPING, axes=stages("one_f_one_b")),
    Row(
        "pp 2, tp 2, zero bubble, packed", PP2_TP2, accumulation=4, packed=True, axes=stages("zero_bubble"), quick=True
    ),
    Row(
        "pp 2, tp 2, whole sequence, interleaved",
        PP2_TP2,
        accumulation=4,
        model={"bias": True, "norm": "layer", "qk_norm": True},
        axes=stages("interleaved") | WHOLE_SEQUENCE,
    ),
    Row("pp 2, cp 2, packed", Mesh(pp=2, cp=2), accumulation=4, packed=True, axes=stages("one_f_one_b"), quick=True),
    Row("pp 2, cp 2, zbv, dropout", Mesh(pp=2, cp=2), 4, None, "never", model=DROPPING, axes=stages("zbv")),
    Row("pp 2, fsdp 2, tp 2", Mesh(pp=2, dp_shard=2, tp=2), accumulation=2, axes=stages("one_f_one_b")),
]
