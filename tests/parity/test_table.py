"""Does every layout train what one process trains?

A step has eight sequences in every row, so rows of one model share a reference. Metric: loss and gradient norm of every
step, each parameter's gradient at step 1, and (fp64) each parameter after five steps, relative to how far it moved.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest
import torch
from attrs import field, frozen

from forgeplan.plan.execution_plan import ExecutionPlan
from forgeplan.plan.mesh import Mesh
from forgeplan.plan.stages import cut_at, dealt
from forgeplan.spec.operation.pp import ONE_STAGE
from forgeplan.spec.operation.pp import SCHEDULES as SCHEDULES_OF_PP
from forgeplan.spec.router.routers import SigmoidTopk, SoftmaxTopk
from forgeplan.spec.schedule.shapes import Constant, Cosine, Linear, Rex, Wsd
from tests.parity.executed import train_and_report
from tests.parity.pool import Pools
from tests.parity.reference import Trained, train_reference
from tests.runtime.tiny import COSINE, decoder, execution_plan, moe, steps

SEQUENCES = 8
WITHIN = {"fp64": 1e-9, "fp32": 1e-5}


@frozen
class Row:
    name: str
    mesh: Mesh = field(factory=Mesh)
    accumulation: int = 1
    recompute: str | None = None
    reshard: str | int = "default"
    packed: bool = False
    schedule: Any = COSINE
    dtype: str = "fp64"
    model: dict[str, Any] = field(factory=dict)
    z: Fraction = Fraction(0)
    axes: dict[str, dict[str, Any]] = field(factory=dict)
    nodes: int = 1

    @property
    def shape(self) -> dict[str, Any]:
        """The model's fields, the vocabulary padded as the compiler does."""
        vocab = self.model.get("vocab", 29)
        return {"pad_vocab": vocab + -vocab % self.mesh.tp} | self.model

    def plan(self) -> ExecutionPlan:
        return execution_plan(
            model=decoder(**self.shape),
            dtype=self.dtype,
            schedule=self.schedule,
            mesh=self.mesh,
            accumulation=self.accumulation,
            micro=SEQUENCES // self.mesh.data_ranks // self.accumulation,
            recompute=self.recompute,
            reshard=self.reshard,
            z=self.z,
            axes=self.axes,
            nodes=self.nodes,
        )

    def __str__(self) -> str:
        return self.name.replace(" ", "_")


FSDP2, FSDP4 = Mesh(dp_shard=2), Mesh(dp_shard=4)
HSDP, REPLICAS = Mesh(dp_replicate=2, dp_shard=2), Mesh(dp_replicate=2)
NORMED = {"qk_norm": True}
MULTI_QUERY = {"kv_heads": 1, "qk_norm": True, "tie": True}
RAGGED = {"dim": 10, "heads": 3, "kv_heads": 1, "head_dim": 6, "ffn": 7, "vocab": 5, "bias": True, "norm": "layer"}
DROPPING = {"dropout": Fraction("0.2")}
ODD_ONE_OUT = {"mlp": "gelu", "window": 5, "softcap": Fraction(3), "pad_vocab": 32}

LAYOUTS = [
    Row("one process, one microbatch"),
    Row("one process, four microbatches", accumulation=4),
    Row("one process, recompute", recompute="full"),
    Row("fsdp 2", FSDP2),
    Row("fsdp 2, four microbatches", FSDP2, accumulation=4),
    Row("fsdp 2, recompute", FSDP2, recompute="full"),
    Row("fsdp 4", FSDP4),
    Row("fsdp 4, two microbatches, recompute", FSDP4, accumulation=2, recompute="full"),
    Row("hsdp 2x2", HSDP),
    Row("hsdp 2x2, two microbatches", HSDP, accumulation=2),
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
    Row("q/k norm, fsdp 2, packed", FSDP2, model=NORMED, packed=True, accumulation=2),
    Row("q/k norm, hsdp, packed, recompute", HSDP, model=NORMED, packed=True, recompute="full"),
    Row("one kv head, q/k norm, tied, fsdp 4", FSDP4, model=MULTI_QUERY),
    Row("uneven shapes, one process", model=RAGGED, accumulation=4),
    Row("uneven shapes, fsdp 4, two microbatches", FSDP4, model=RAGGED, accumulation=2),
    Row("dropout, one process, four microbatches", model=DROPPING, accumulation=4),
    Row("dropout, fsdp 2, recompute", FSDP2, model=DROPPING, recompute="full", accumulation=2),
    Row("gelu, window, soft cap, padded vocabulary, fsdp 2", FSDP2, model=ODD_ONE_OUT),
]
HALF = Fraction("0.5")
TP2, TP4 = Mesh(tp=2), Mesh(tp=4)
WHOLE_SEQUENCE = {"tp": {"sequence": False}}
REPLICATED = {"tp": {"kv": "replicate"}}
FULL = {"qk_norm": True, "bias": True, "norm": "layer"}
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
    Row("tp 2, tied, recompute", TP2, model={"tie": True}, recompute="full"),
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
    ),
    Row("two replicas, tp 2", Mesh(dp_replicate=2, tp=2)),
    Row("hsdp 2x2, tp 2", Mesh(dp_replicate=2, dp_shard=2, tp=2)),
    Row("fsdp 4, tp 2, reshard over 2", Mesh(dp_shard=4, tp=2), reshard=2),
]
CP2, CP4 = Mesh(cp=2), Mesh(cp=4)
RING = {"cp": {"attention": "ring"}}
RING_IN_ORDER = {"cp": {"attention": "ring", "balance": "none"}}
CONTEXT = [
    Row("cp 2", CP2),
    Row("cp 2, in order", CP2, axes={"cp": {"balance": "none"}}, packed=True),
    Row("cp 4, packed, q/k norm", CP4, model=NORMED, packed=True),
    Row("cp 2, dropout, window, soft cap", CP2, model=ODD_ONE_OUT | DROPPING, recompute="full"),
    Row("cp 2, z-loss, tied", CP2, z=HALF, model={"tie": True}),
    Row("fsdp 2, cp 2", Mesh(dp_shard=2, cp=2), accumulation=2, packed=True),
    Row("tp 2, cp 2", Mesh(cp=2, tp=2), packed=True),
    Row("tp 2, cp 2, whole sequence, dropout", Mesh(cp=2, tp=2), axes=WHOLE_SEQUENCE, model=DROPPING),
    Row("fsdp 2, tp 2, cp 2", Mesh(dp_shard=2, cp=2, tp=2), model=NORMED, packed=True),
    Row("cp 2, ring", CP2, axes=RING),
    Row("cp 2, ring, in order, by the definition", CP2, axes=RING_IN_ORDER, model={"attention": "math"}),
    Row("cp 4, ring, q/k norm", CP4, axes=RING, model=NORMED),
    Row("fsdp 2, cp 2, ring, recompute", Mesh(dp_shard=2, cp=2), axes=RING, accumulation=2, recompute="full"),
    Row("tp 2, cp 2, ring", Mesh(cp=2, tp=2), axes=RING),
]


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
    Row("pp 2, fsdp 2, interleaved, packed", PP2_FSDP2, accumulation=4, packed=True, axes=stages("interleaved")),
    Row("pp 2, fsdp 2, zero bubble", PP2_FSDP2, accumulation=4, reshard="never", axes=stages("zero_bubble")),
    Row("pp 2, fsdp 2, zbv, recompute", PP2_FSDP2, 4, "full", "never", axes=stages("zbv")),
    Row("pp 2, two replicas, dualpipe_v", Mesh(pp=2, dp_replicate=2), 4, None, "never", axes=stages("dualpipe_v")),
    Row("pp 2, tp 2, dropout", PP2_TP2, accumulation=4, model=DROPPING, axes=stages("one_f_one_b")),
    Row("pp 2, tp 2, zero bubble, packed", PP2_TP2, accumulation=4, packed=True, axes=stages("zero_bubble")),
    Row(
        "pp 2, tp 2, whole sequence, interleaved",
        PP2_TP2,
        accumulation=4,
        model={"bias": True, "norm": "layer", "qk_norm": True},
        axes=stages("interleaved") | WHOLE_SEQUENCE,
    ),
    Row("pp 2, cp 2, packed", Mesh(pp=2, cp=2), accumulation=4, packed=True, axes=stages("one_f_one_b")),
    Row("pp 2, cp 2, zbv, dropout", Mesh(pp=2, cp=2), 4, None, "never", model=DROPPING, axes=stages("zbv")),
    Row("pp 2, fsdp 2, tp 2", Mesh(pp=2, dp_shard=2, tp=2), accumulation=2, axes=stages("one_f_one_b")),
]
LOSSES = [
    Row("z-loss, one process, four microbatches", accumulation=4, z=HALF),
    Row("z-loss, fsdp 4, packed, recompute", FSDP4, packed=True, recompute="full", z=HALF),
    Row("z-loss, hsdp 2x2, tied, two microbatches", HSDP, accumulation=2, model={"tie": True}, z=HALF),
]
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
    Row("ep 2, shared expert, losses, recompute", EP2, model=SHARED, accumulation=2, recompute="full"),
    Row("ep 2, capacity, packed", EP2, model=CROWDED, accumulation=2, packed=True),
    Row("ep 4, balanced by bias, groups", EP4, model=BIASED, accumulation=2),
    Row("ep 4, inside nodes and between", EP4, model=SHARED, axes={"ep": {"hierarchical": True}}, nodes=2),
    Row("fsdp 4, ep 2, scaled gradients", Mesh(dp_shard=4, ep=2), model=SCALED),
    Row("hsdp 2x2, ep 2", Mesh(dp_replicate=2, dp_shard=2, ep=2), model=BIASED),
    Row("fsdp 8, ep 2, reshard over 2", Mesh(dp_shard=8, ep=2), model=BIASED, reshard=2),
    Row("tp 2, experts", TP2, model=SHARED),
    Row("tp 2, experts, whole sequence", TP2, model=BIASED, axes=WHOLE_SEQUENCE, accumulation=2),
    Row("tp 2, capacity", TP2, model=CROWDED),
    Row("tp 2, ep 2", Mesh(tp=2, ep=2), model=BIASED, recompute="full"),
    Row("tp 2, ep 4 over fsdp 2", Mesh(dp_shard=2, tp=2, ep=4), model=SHARED),
    Row("cp 2, ep 2, capacity", Mesh(cp=2, ep=2), model=CROWDED, packed=True),
    Row("cp 2, ep 2, bias", Mesh(cp=2, ep=2), model=BIASED),
    Row("cp 2, tp 2, ep 2, losses", Mesh(cp=2, tp=2, ep=2), model=SHARED),
    Row("further tokens, fsdp 2, packed, recompute", FSDP2, model=FURTHER, packed=True, recompute="full"),
    Row("further tokens, tp 2, ep 2", Mesh(tp=2, ep=2), model=FURTHER),
    Row("further tokens, dense, tied, fsdp 2", FSDP2, model={"mtp": 1, "tie": True}, accumulation=2),
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
    Row("fp32, fsdp 2", FSDP2, dtype="fp32", recompute="full"),
    Row("fp32, hsdp 2x2, tied", HSDP, dtype="fp32", model={"tie": True}, accumulation=2),
]


_references: dict[str, Trained] = {}


def reference(row: Row) -> Trained:
    """The reference of a row's model, data and schedule; computed once, with microbatches of two.

    Routers see a microbatch at once, so a model with experts has the row's own.
    """
    accumulation = SEQUENCES // row.plan().job.batch.micro if "moe" in row.model else 4
    key = repr((accumulation, sorted(row.shape.items()), row.packed, row.schedule, row.dtype, row.z))
    if key not in _references:
        alone = Row(
            row.name,
            accumulation=accumulation,
            packed=row.packed,
            schedule=row.schedule,
            dtype=row.dtype,
            model=row.shape,
            z=row.z,
        )
        _references[key] = train_reference(alone.plan(), row.packed)
    return _references[key]


@pytest.mark.parametrize(
    "row", LAYOUTS + MODELS + TENSOR + CONTEXT + EXPERTS + PIPELINE + LOSSES + SCHEDULES + SINGLE, ids=str
)
def test_trains_what_one_process_trains(row: Row, pools: Pools) -> None:
    if row.mesh.world == 1:
        trained = train_and_report(row.plan(), row.packed)
    else:
        trained, *others = pools[row.mesh.world].run("tests.parity.executed:train_and_report", row.plan(), row.packed)
        for other in others:
            assert other == (trained.losses, trained.norms, trained.rates), "ranks disagree"
    check_same(trained, reference(row), row.dtype)


def check_same(trained: Trained, wanted: Trained, dtype: str) -> None:
    within = WITHIN[dtype]
    assert trained.rates == pytest.approx(wanted.rates, rel=1e-12)
    assert trained.losses == pytest.approx(wanted.losses, rel=within)
    assert trained.norms == pytest.approx(wanted.norms, rel=within)
    assert trained.gradients.keys() == wanted.gradients.keys()
    assert trained.initial.keys() == trained.weights.keys() == wanted.weights.keys()
    for name, gradient in wanted.gradients.items():
        assert distance(trained.gradients[name], gradient) <= within * gradient.norm(), name
    for name, initial in wanted.initial.items():
        assert torch.equal(trained.initial[name], initial), name
        if dtype == "fp64":
            moved = wanted.weights[name] - initial
            assert distance(trained.weights[name], wanted.weights[name]) <= within * moved.norm(), name


def distance(a: torch.Tensor, b: torch.Tensor) -> float:
    return float((a - b).norm())
