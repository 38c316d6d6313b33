"""Do models with experts train the same however their experts are dealt to ranks?"""

from __future__ import annotations

from fractions import Fraction

import attrs
import pytest
import torch

from forgeplan.plan.mesh import Mesh
from forgeplan.runtime.selftest.executed import train_plan
from forgeplan.runtime.selftest.pool import Pools
from forgeplan.runtime.selftest.reference import train_reference
from tests.parity.experts_trained import skewed_plan, train_skewed
from tests.runtime.model.moe.layers import moe
from tests.runtime.tiny import decoder, execution_plan

MODEL = decoder(moe=moe(experts=8, top_k=2, shared=1))
CLIP = Fraction("0.1")


def variation(counts: tuple[int, ...]) -> float:
    loads = torch.tensor(counts).double()
    return (loads.std(correction=0) / loads.mean()).item()


@pytest.mark.parametrize("mesh", [Mesh(dp_replicate=2, dp_shard=2, ep=2), Mesh(dp_shard=4, ep=4)], ids=["ep2", "ep4"])
def test_clipping_uses_one_norm_that_counts_every_expert_once(mesh: Mesh, pools: Pools) -> None:
    """C036: the norm of one process on every rank, and dense weights that are the same bits on replicas."""
    plan = execution_plan(model=MODEL, mesh=mesh, dtype="fp64", clip=CLIP, total_steps=3)
    answers = pools[4].run("tests.parity.experts_trained:replicas_after_training", plan)
    alone = execution_plan(model=MODEL, accumulation=4, dtype="fp64", clip=CLIP, total_steps=3)
    wanted = train_reference(alone, packed=False).norms
    assert min(wanted) > float(CLIP)
    norms = [norms for norms, _ in answers]
    assert norms == [norms[0]] * 4
    assert norms[0] == pytest.approx(wanted, rel=1e-9)
    for rank in range(mesh.dp_shard, 4):
        for name, weight in answers[rank][1].items():
            assert torch.equal(weight, answers[rank - mesh.dp_shard][1][name]), name


def test_tokens_that_travel_by_node_train_the_same_model(pools: Pools) -> None:
    """Four expert ranks on two nodes: the exchange is in two steps, the numbers are those of one process."""
    plan = execution_plan(
        model=MODEL, mesh=Mesh(dp_shard=4, ep=4), dtype="fp64", axes={"ep": {"hierarchical": True}}, total_steps=3
    )
    cluster = attrs.evolve(plan.job.cluster, nodes=2, devices_per_node=2)
    plan = attrs.evolve(plan, job=attrs.evolve(plan.job, cluster=cluster))
    sizes = pools[4].run("tests.parity.experts_trained:sizes_of_exchanges", plan)
    assert sizes == [(4, 2, 2)] * 4
    trained = pools[4].run("forgeplan.runtime.selftest.executed:train_and_report", plan, False)[0]
    wanted = train_plan(execution_plan(model=MODEL, accumulation=4, dtype="fp64", total_steps=3), False)
    assert trained.losses == pytest.approx(wanted.losses, rel=1e-12)
    assert trained.norms == pytest.approx(wanted.norms, rel=1e-9)


def test_the_bias_balances_a_skewed_router_while_training() -> None:
    """Coefficient of variation of the load from ≥ 1.0 to ≤ 0.1 within 300 updates at rate 0.01; at the end over 20
    steps, as the 512 tokens of one are too few to tell."""
    loads, bias = train_skewed(skewed_plan(accumulation=1, micro=8))
    assert variation(loads[0]) >= 1.0
    assert variation(tuple(map(sum, zip(*loads[280:300], strict=True)))) <= 0.1
    assert bias.sum().abs() < 1e-12
    assert bias[0] < bias[-1]


def test_loads_and_bias_are_the_same_in_every_layout(pools: Pools) -> None:
    """Counts of all microbatches and ranks, once an update: not those of a rank, nor those of a replayed forward."""
    wanted_loads, wanted_bias = train_skewed(skewed_plan(accumulation=1, micro=8, total_steps=20))
    assert wanted_bias.abs().max() > 0.05
    four = train_skewed(skewed_plan(accumulation=4, micro=2, total_steps=20))
    answers = [four]
    for mesh, recompute in ((Mesh(dp_shard=2), "full"), (Mesh(dp_shard=2, ep=2), None), (Mesh(tp=2, ep=2), None)):
        micro = 8 // mesh.data_ranks
        plan = skewed_plan(micro=micro, mesh=mesh, recompute=recompute, total_steps=20)
        answers += pools[2].run("tests.parity.experts_trained:train_skewed", plan)
    for loads, bias in answers:
        assert loads == wanted_loads
        assert torch.allclose(bias, wanted_bias, rtol=0, atol=1e-12)
