"""Do layouts that other systems computed wrongly, as public reports say, compute what one process computes?

Each test names its case. The models are as small as the reports' own: 106,816 parameters, steps of 8·32 tokens.
"""

from __future__ import annotations

from fractions import Fraction
from math import log
from typing import Any

import pytest
import torch

from forgeplan.plan.mesh import Mesh
from forgeplan.runtime.executor import build
from forgeplan.runtime.selftest.bench import Bench
from forgeplan.runtime.selftest.pool import Pools
from forgeplan.runtime.selftest.rows.pipeline import stages
from forgeplan.spec.plan import Precision
from tests.parity import cases_on_ranks
from tests.parity.cases_on_ranks import ALONE, Step, first_step, first_step_by_hand, tiny, tiny_plan
from tests.runtime.model.moe.layers import sigmoid
from tests.runtime.tiny import moe

HERE = "tests.parity.cases_on_ranks"
CPU = torch.device("cpu")
WHOLE_SEQUENCE = {"tp": {"sequence": False}}
MIXED = Precision(params="fp32", compute="bf16", reduce="fp32", moments="fp32")


def experts(**fields: Any) -> dict[str, Any]:
    """8 experts of width 64, two for a token."""
    return {"moe": moe(ffn=64, **fields)}


def check(found: Step, wanted: Step) -> None:
    assert found.counted == wanted.counted
    assert found.loss == pytest.approx(wanted.loss, rel=1e-9)
    assert found.norm == pytest.approx(wanted.norm, rel=1e-9)
    assert found.gradients.keys() == wanted.gradients.keys()
    for name, gradient in wanted.gradients.items():
        assert (found.gradients[name] - gradient).norm() <= 1e-9 * gradient.norm(), name


@pytest.mark.parametrize("z", ["0", "1e-4"])
def test_a_loss_is_divided_once_however_many_microbatches_make_a_step(z: str, bench: Bench) -> None:
    """C035: 8 sequences as 1, 2, 4 and 8 microbatches, each sequence with another number of counted labels."""
    for micro in (8, 4, 2, 1):
        found = bench.deviations(tiny_plan(tiny(), micro=micro, z=Fraction(z)), packed=False)
        assert [deviation for deviation in found if not deviation.is_same] == [], micro


@pytest.mark.parametrize("mesh", [Mesh(), Mesh(pp=2)], ids=["pp 1", "pp 2"])
def test_gradients_of_a_pipeline_are_divided_by_the_counted_labels(mesh: Mesh, pools: Pools) -> None:
    """C037: two of five labels are not counted, 4 layers; with schedules that have one and two stages a rank."""
    wanted = first_step_by_hand(tiny_plan(tiny(layers=4)), "three of five")
    assert 0.5 < wanted.counted / first_step_by_hand(tiny_plan(tiny(layers=4))).counted < 0.7
    if mesh.pp == 1:
        check(first_step(tiny_plan(tiny(layers=4)), "three of five"), wanted)
        return
    for schedule in ("one_f_one_b", "interleaved"):
        plan = tiny_plan(tiny(layers=4), mesh, axes=stages(schedule, layers=4), reshard="never")
        for found in pools[2].run(f"{HERE}:first_step", plan, "three of five"):
            check(found, wanted)


@pytest.mark.parametrize(
    "mesh",
    [Mesh(dp_shard=4), Mesh(dp_replicate=4), Mesh(dp_replicate=2, dp_shard=2)],
    ids=["dp_shard 4", "dp_replicate 4", "2 x 2"],
)
def test_replicas_do_not_change_the_gradient_norm(mesh: Mesh, bench: Bench) -> None:
    """C038: 4 ranks that share parameters, hold copies of them, or both."""
    found = bench.deviations(tiny_plan(tiny(), mesh), packed=False)
    assert [deviation for deviation in found if not deviation.is_same] == []


@pytest.mark.parametrize("balance", ["none", "head_tail"])
def test_context_ranks_count_each_label_once(balance: str, pools: Pools) -> None:
    """C039: the second half of every sequence counts nothing, so that in order the second rank has no label at all."""
    wanted = first_step_by_hand(tiny_plan(tiny(), length=64), "first half")
    plan = tiny_plan(tiny(), Mesh(cp=2), length=64, axes={"cp": {"balance": balance}})
    for found in pools[2].run(f"{HERE}:first_step", plan, "first half"):
        check(found, wanted)


@pytest.mark.parametrize("axes", [{}, WHOLE_SEQUENCE], ids=["sequence", "whole sequence"])
def test_norms_of_queries_and_keys_learn_from_the_heads_of_all_ranks(
    axes: dict[str, Any], bench: Bench, pools: Pools
) -> None:
    """C040: 3 steps on 2 tp ranks; a rank's own part of the gradient is 0.7 to 0.9 away from the whole."""
    plan = tiny_plan(tiny(qk_norm=True), Mesh(tp=2), axes=axes)
    first, second = pools[2].run(f"{HERE}:weights_held", plan, ("q_norm", "k_norm"))
    wanted = bench.reference(plan, packed=False)
    assert len(first) == 4
    for name, weight in first.items():
        moved = wanted.weights[name] - wanted.initial[name]
        assert torch.equal(weight, second[name])
        assert (weight - wanted.weights[name]).norm() <= 1e-9 * moved.norm(), name


def mixed_plan(vocab: int, mesh: Mesh = ALONE, **fields: Any) -> Any:
    model = tiny(vocab=vocab, pad_vocab=vocab + -vocab % mesh.tp, **fields)
    return tiny_plan(model, mesh, precision=MIXED)


@pytest.mark.parametrize(("vocab", "loss"), [(1680, 7.426549), (256, 5.545177)])
def test_a_loss_of_bf16_logits_is_not_rounded_to_bf16(vocab: int, loss: float, pools: Pools) -> None:
    """C042: ln V of a head that is zero; in bf16 it would be 7.4375 and 5.53125. Also of logits on two ranks."""
    losses = [cases_on_ranks.loss_of_a_zero_head(mixed_plan(vocab))]
    losses += pools[2].run(f"{HERE}:loss_of_a_zero_head", mixed_plan(vocab, Mesh(tp=2)))
    assert losses == pytest.approx([loss] * 3, abs=1e-5)


def test_positions_far_from_the_first_are_told_apart_in_bf16() -> None:
    """C043: the cosines of pair 0 that a block gets, whose positions bf16 would round to the same; also of a model
    that was cast. Nothing is stored that a cast, a resume or an allocation could spoil."""
    spec = tiny(context=16_384)
    model: Any = build(tiny_plan(spec, micro=1, length=512, precision=MIXED), CPU).model
    found = []
    model.layers["0"].register_forward_pre_hook(lambda block, inputs: found.append(inputs[1].rotation.cos_BSP))
    assert dict(model.named_buffers()) == {}
    positions = torch.arange(512)[None].clone()
    positions[0, -1] = 15_962
    tokens = torch.zeros(1, 512, dtype=torch.int64)
    model(tokens, positions)
    model.bfloat16()(tokens, positions)
    assert [cos.dtype for cos in found] == [torch.float32] * 2
    for cos_BSP in found:
        assert cos_BSP[0, [256, 257, 511], 0].tolist() == pytest.approx([-0.039791, 0.819306, -0.908016], abs=1e-6)


@pytest.mark.parametrize("mesh", [Mesh(), Mesh(tp=2)], ids=["one process", "tp 2"])
@pytest.mark.parametrize("fields", [{}, {"qk_norm": True, **experts(router=sigmoid())}], ids=["dense", "experts"])
def test_a_model_begins_without_a_trace_of_what_was_in_memory(fields: dict[str, Any], mesh: Mesh, pools: Pools) -> None:
    """C045: memory full of NaN before; the first loss is that of guessing, ln 256 = 5.545."""
    plan = tiny_plan(tiny(**fields), mesh)
    answers = [cases_on_ranks.loss_after_nan(plan)] if mesh.world == 1 else pools[2].run(f"{HERE}:loss_after_nan", plan)
    constants = {p.name: float(p.role == "norm") for p in plan.job.model.parameters() if p.role in ("norm", "bias")}
    constants |= {buffer.name: 0.0 for buffer in plan.job.model.buffers()}
    for loss, tensors in answers:
        assert loss == pytest.approx(5.545, abs=0.1)
        assert all(tensor.isfinite().all() for tensor in tensors.values())
        assert {name for name, value in constants.items() if (tensors[name] != value).any()} == set()


@pytest.mark.parametrize("tp", [2, 4])
def test_rows_that_pad_a_divided_vocabulary_are_in_no_sum(tp: int, pools: Pools) -> None:
    """C049: 10 ids padded to 16, a head that is zero: ln 10 = 2.302585, not ln 16 = 2.772589. The last of four ranks
    has padding only."""
    model = tiny(vocab=10, pad_vocab=16, kv_heads=4)
    losses = pools[tp].run(f"{HERE}:loss_of_a_zero_head", tiny_plan(model, Mesh(tp=tp)))
    assert losses == pytest.approx([log(10)] * tp, rel=1e-12)


def test_a_loss_of_routers_does_not_grow_with_accumulation() -> None:
    """C088: its part of the gradient, from 1, 2 and 4 microbatches of the same content."""
    parts = []
    for accumulation in (1, 2, 4):
        plans = [
            tiny_plan(tiny(**experts(balance=Fraction(weight))), accumulation=accumulation) for weight in ("0.01", "0")
        ]
        with_loss, without = (first_step(plan, alike=True).gradients for plan in plans)
        gates = [name for name in with_loss if name.endswith("moe.router.weight")]
        parts.append(torch.cat([with_loss[name] - without[name] for name in gates]))
        assert parts[-1].norm() > 1e-5
        assert (parts[-1] - parts[0]).norm() <= 1e-9 * parts[0].norm()


@pytest.mark.parametrize(
    ("mesh", "axes"),
    [
        (Mesh(), {}),
        (Mesh(dp_shard=2), {}),
        (Mesh(tp=2), {}),
        (Mesh(tp=2), WHOLE_SEQUENCE),
        (Mesh(cp=2), {}),
        (Mesh(dp_shard=2, ep=2), {}),
    ],
    ids=["one process", "dp 2", "tp 2", "tp 2, whole sequence", "cp 2", "ep 2"],
)
def test_a_loss_of_routers_has_one_scale_in_every_layout(mesh: Mesh, axes: dict[str, Any], pools: Pools) -> None:
    """C089: statistics are those of a microbatch, whichever ranks share it, and a step averages over microbatches."""
    model = tiny(**experts(balance=Fraction("0.1")))
    plan = tiny_plan(model, mesh, axes=axes)
    wanted = first_step_by_hand(tiny_plan(model))
    for found in [first_step(plan)] if mesh.world == 1 else pools[2].run(f"{HERE}:first_step", plan):
        check(found, wanted)
