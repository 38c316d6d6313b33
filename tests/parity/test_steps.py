"""Are steps and evaluations that are out of the ordinary those of one process, whatever the ranks divide?

Labels that no rank counts or that only some do, gradients that are reduced in every microbatch, weights in bf16.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import attrs
import pytest
import torch

from forgeplan.plan.execution_plan import ExecutionPlan
from forgeplan.plan.mesh import Mesh
from forgeplan.runtime.selftest.bench import Bench
from forgeplan.runtime.selftest.pool import Pools
from forgeplan.runtime.selftest.rows.pipeline import stages
from forgeplan.spec.plan import Precision
from tests.parity import cases_on_ranks
from tests.parity.cases_on_ranks import first_step_by_hand, tiny, tiny_plan
from tests.parity.test_cases import check
from tests.runtime.tiny import moe

HERE = "tests.parity.cases_on_ranks"
WHOLE_SEQUENCE = {"tp": {"sequence": False}}
EXPERTS = {"moe": moe(ffn=16, shared=1, balance=Fraction("0.1"), z=Fraction("0.01"))}
LAYOUTS: dict[str, tuple[Mesh, dict[str, Any], dict[str, Any]]] = {
    "dp 2": (Mesh(dp_shard=2), {}, {}),
    "tp 2": (Mesh(tp=2), {}, {"bias": True, "qk_norm": True}),
    "tp 2, whole sequence": (Mesh(tp=2), WHOLE_SEQUENCE, {"bias": True, "qk_norm": True}),
    "cp 2": (Mesh(cp=2), {}, {"window": 5, "softcap": Fraction(3)}),
    "pp 2": (Mesh(pp=2), stages("one_f_one_b"), {}),
    "ep 2": (Mesh(dp_shard=2, ep=2), {}, EXPERTS),
    "tp 2, experts": (Mesh(tp=2), WHOLE_SEQUENCE, EXPERTS),
    "tp 2, ep 2": (Mesh(tp=2, ep=2), {}, EXPERTS),
    "cp 2, ep 2": (Mesh(cp=2, ep=2), {}, EXPERTS),
    "two replicas, cp 2": (Mesh(dp_replicate=2, cp=2), {}, {}),
    "tp 2, cp 2": (Mesh(tp=2, cp=2), {}, {"pad_vocab": 258}),
}


def plans(name: str, **fields: Any) -> tuple[ExecutionPlan, ExecutionPlan]:
    """A layout and the same in one process."""
    mesh, axes, of_model = LAYOUTS[name]
    return tiny_plan(tiny(**of_model), mesh, axes=axes, **fields), tiny_plan(tiny(**of_model), **fields)


@pytest.mark.parametrize("name", LAYOUTS)
@pytest.mark.parametrize("counted", ["none", "first sequences"])
def test_labels_that_no_rank_or_only_some_ranks_count(counted: str, name: str, pools: Pools) -> None:
    """Without any, loss and gradient are zero, not NaN; routers go on to balance their experts."""
    plan, alone = plans(name)
    wanted = first_step_by_hand(alone, counted)
    for found in pools[plan.mesh.world].run(f"{HERE}:first_step", plan, counted):
        check(found, wanted)
    if counted == "none":
        assert (wanted.counted, wanted.loss) == (0, 0)
        assert (wanted.norm > 0) == (plan.job.model.moe is not None)


@pytest.mark.parametrize("name", [name for name in LAYOUTS if "pp" not in name])
def test_an_evaluation_is_that_of_one_process_before_and_after_training(name: str, pools: Pools) -> None:
    plan, alone = plans(name, total_steps=1)
    wanted = cases_on_ranks.evaluated_around_training(alone)
    for found in pools[plan.mesh.world].run(f"{HERE}:evaluated_around_training", plan):
        assert found == pytest.approx(wanted, rel=1e-9)
    assert abs(wanted[0] - wanted[1]) > 1e-6


def reduced_in_every_microbatch(plan: ExecutionPlan) -> ExecutionPlan:
    """As on a GPU whose plan does not state its memory."""
    cluster = attrs.evolve(plan.job.cluster, arch="sm90")
    return attrs.evolve(plan, job=attrs.evolve(plan.job, cluster=cluster))


@pytest.mark.parametrize("name", ["ep 2", "tp 2, experts", "tp 2, ep 2", "cp 2, ep 2"])
def test_gradients_of_experts_may_be_reduced_in_every_microbatch(name: str, bench: Bench) -> None:
    plan, _ = plans(name, micro=1)
    assert plan.job.batch.accumulation > 1
    found = bench.deviations(reduced_in_every_microbatch(plan), packed=False)
    assert [deviation for deviation in found if not deviation.is_same] == []


def test_gradients_of_bf16_experts_add_up_in_the_dtype_of_reduction(pools: Pools) -> None:
    """Once a step or in every microbatch: 32 parts of each gradient, rounded to bf16, are summed in fp32."""
    precision = Precision(params="bf16", compute="fp32", reduce="fp32", moments="fp32")
    model, mesh = tiny(**EXPERTS), Mesh(dp_shard=2, ep=2)
    plan = tiny_plan(model, mesh, micro=1, accumulation=32, precision=precision, total_steps=1)
    once, each = (
        pools[2].run("forgeplan.runtime.selftest.executed:train_and_report", p, False)[0].gradients
        for p in (plan, reduced_in_every_microbatch(plan))
    )
    for name, gradient in once.items():
        assert gradient.dtype == torch.bfloat16
        assert (each[name].float() - gradient.float()).norm() <= 5e-3 * gradient.float().norm(), name


def test_parts_of_tp_ranks_are_summed_in_the_dtype_of_reduction(pools: Pools) -> None:
    """64.5 + 256 + 130 + 256 is 706.5, to bf16 708; added in bf16 it is 704, in whichever order."""
    precision = Precision(params="bf16", compute="bf16", reduce="fp32", moments="fp32")
    plan = tiny_plan(tiny(qk_norm=True, kv_heads=4), Mesh(tp=4), precision=precision)
    assert pools[4].run(f"{HERE}:sum_of_parts", plan, [64.5, 256.0, 130.0, 256.0]) == [708] * 4
