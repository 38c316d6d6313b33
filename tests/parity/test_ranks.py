"""Do ranks decide, count and name alike?"""

from __future__ import annotations

import attrs
import pytest
import torch

from forgeplan.plan.execution_plan import ExecutionPlan
from forgeplan.plan.mesh import Mesh
from forgeplan.runtime.executor import build
from forgeplan.runtime.loss import forward_loss
from forgeplan.runtime.selftest.executed import train_and_report
from forgeplan.runtime.selftest.pool import Pools, RankFailed
from forgeplan.runtime.selftest.reference import train_reference
from forgeplan.spec.plan import Precision
from tests.parity import on_ranks
from tests.runtime.tiny import TinyData, decoder, execution_plan

FSDP2 = Mesh(dp_shard=2)
HSDP = Mesh(dp_replicate=2, dp_shard=2)


def alone(plan: ExecutionPlan) -> ExecutionPlan:
    """The same steps on one process."""
    batch = plan.job.batch
    return execution_plan(
        model=plan.job.model,
        precision=plan.job.precision,
        accumulation=batch.accumulation * plan.mesh.data_ranks,
        micro=batch.micro,
        total_steps=plan.steps,
    )


@pytest.mark.parametrize("mesh", [FSDP2, HSDP], ids=["fsdp", "hsdp"])
def test_every_rank_skips_the_step_in_which_one_has_a_nan(mesh: Mesh, pools: Pools) -> None:
    plan = execution_plan(mesh=mesh, dtype="fp64", total_steps=4)
    answers = pools[mesh.world].run("tests.parity.on_ranks:train_with_nan_on_one_rank", plan, 2)
    wanted = train_reference(alone(plan), packed=False, left_out={2})
    for weights, num_skipped, samples, skipped in answers:
        assert (num_skipped, samples, skipped) == (1, 8 * mesh.data_ranks, [False, True, False, False])
        for name, weight in weights.items():
            moved = wanted.weights[name] - wanted.initial[name]
            assert (weight - wanted.weights[name]).norm() <= 1e-9 * moved.norm(), name


def test_a_signal_on_one_rank_stops_all_after_the_same_step(pools: Pools) -> None:
    answers = pools[2].run("tests.parity.on_ranks:stop_by_signal_on_one_rank", execution_plan(mesh=FSDP2), 2)
    assert answers == [("stopped", 2, [1, 2])] * 2


def test_evaluation_weighs_labels_not_microbatches_or_ranks(pools: Pools) -> None:
    losses = pools[2].run("tests.parity.on_ranks:evaluate_unequal_shares", execution_plan(mesh=FSDP2, dtype="fp64"))
    plan = execution_plan(dtype="fp64")
    bundle, data = build(plan, torch.device("cpu")), TinyData(plan)
    sums = [forward_loss(bundle, data.microbatch(first), None) for first in (0, 2, 4)]
    assert len({int(s.counted) for s in sums}) == 3
    wanted = sum(s.loss.item() for s in sums) / sum(s.counted.item() for s in sums)
    assert losses == [pytest.approx(wanted, rel=1e-12)] * 2


@pytest.mark.parametrize("interrupted", [False, True], ids=["whole", "interrupted"])
@pytest.mark.parametrize("tie", [False, True], ids=["untied", "tied"])
@pytest.mark.parametrize("reshard", ["never", 2])
def test_an_evaluation_leaves_no_parameter_gathered(
    reshard: str | int, tie: bool, interrupted: bool, pools: Pools
) -> None:
    """A checkpoint that follows must find shards, cut over all ranks."""
    plan = execution_plan(mesh=Mesh(dp_shard=4), model=decoder(tie=tie), reshard=reshard)
    assert pools[4].run("tests.parity.on_ranks:shards_after_evaluation", plan, interrupted) == [[]] * 4


def test_evaluations_between_steps_change_no_bit_of_training(pools: Pools) -> None:
    plan = execution_plan(mesh=FSDP2, accumulation=2, total_steps=4)
    trained = pools[2].run("forgeplan.runtime.selftest.executed:train_and_report", plan, False)[0]
    with_evaluations = pools[2].run("tests.parity.on_ranks:train_between_evaluations", plan)[0]
    assert with_evaluations == list(zip(trained.losses, trained.norms, strict=True))


def test_resharding_to_a_number_of_ranks_makes_the_same_groups_for_any_depth(pools: Pools) -> None:
    few, many = (
        pools[4].run(
            "tests.parity.on_ranks:number_of_groups",
            execution_plan(mesh=Mesh(dp_shard=4), reshard=2, model=decoder(layers=layers)),
        )
        for layers in (1, 6)
    )
    assert few == many


def test_state_has_the_same_names_shapes_and_values_in_every_layout(pools: Pools) -> None:
    plan = execution_plan(mesh=HSDP, dtype="fp64", recompute="full", model=decoder(vocab=5, kv_heads=1, tie=True))
    sharded = pools[4].run("tests.parity.on_ranks:state_after_training", plan)[0]
    single = on_ranks.state_after_training(alone(plan))
    assert list(sharded) == list(single)
    for name, tensor in single.items():
        assert sharded[name].shape == tensor.shape
        assert sharded[name].dtype == tensor.dtype
        assert torch.allclose(sharded[name], tensor, rtol=1e-7, atol=1e-12), name


def test_shards_full_of_nan_are_overwritten_with_the_values_of_one_process(pools: Pools) -> None:
    model = decoder(dim=10, heads=3, kv_heads=1, head_dim=6, ffn=7, vocab=5, bias=True, norm="layer", qk_norm=True)
    sharded = pools[4].run(
        "tests.parity.on_ranks:fill_with_nan_then_initialise", execution_plan(mesh=Mesh(dp_shard=4), model=model)
    )
    single = build(execution_plan(model=model), torch.device("cpu")).model
    for tensors in sharded:
        assert all(torch.equal(tensors[name], p) for name, p in single.named_parameters())


def test_bf16_compute_is_the_same_policy_with_and_without_fsdp(pools: Pools) -> None:
    """Stated bounds of bf16: loss 5e-4, norm 1e-2, gradients of step 1 5e-3."""
    precision = Precision(params="fp32", compute="bf16", reduce="fp32", moments="fp32")
    plan = execution_plan(mesh=FSDP2, precision=precision, accumulation=2, total_steps=2)
    sharded = pools[2].run("forgeplan.runtime.selftest.executed:train_and_report", plan, False)[0]
    single = train_and_report(alone(plan), False)
    assert sharded.losses == pytest.approx(single.losses, rel=5e-4)
    assert sharded.norms == pytest.approx(single.norms, rel=1e-2)
    for name, gradient in single.gradients.items():
        assert gradient.dtype == sharded.gradients[name].dtype == torch.float32
        assert (sharded.gradients[name] - gradient).norm() <= 5e-3 * gradient.norm(), name


def test_gradients_may_be_reduced_in_every_microbatch(pools: Pools) -> None:
    """On a GPU whose plan does not state its memory; the numbers stay those of one process."""
    plan = execution_plan(mesh=FSDP2, dtype="fp64", accumulation=4, micro=1)
    cluster = attrs.evolve(plan.job.cluster, arch="sm90")
    plan = attrs.evolve(plan, job=attrs.evolve(plan.job, cluster=cluster))
    trained = pools[2].run("forgeplan.runtime.selftest.executed:train_and_report", plan, False)[0]
    wanted = train_reference(alone(plan), packed=False)
    assert trained.losses == pytest.approx(wanted.losses, rel=1e-9)
    assert trained.norms == pytest.approx(wanted.norms, rel=1e-9)


def test_gradients_of_bf16_weights_add_up_in_the_dtype_of_reduction(pools: Pools) -> None:
    """Reduced in every microbatch or once: 64 parts, each rounded to bf16, are summed in fp32."""
    precision = Precision(params="bf16", compute="fp32", reduce="fp32", moments="fp32")
    plan = execution_plan(mesh=FSDP2, precision=precision, accumulation=128, micro=1, total_steps=1)
    cluster = attrs.evolve(plan.job.cluster, arch="sm90")
    often = attrs.evolve(plan, job=attrs.evolve(plan.job, cluster=cluster))
    once, each = (
        pools[2].run("forgeplan.runtime.selftest.executed:train_and_report", p, False)[0] for p in (plan, often)
    )
    assert {gradient.dtype for gradient in each.gradients.values()} == {torch.bfloat16}
    summed_once, summed_each = (
        torch.cat([trained.gradients[name].float().flatten() for name in once.gradients]) for trained in (once, each)
    )
    assert (summed_each - summed_once).norm() <= 5e-3 * summed_once.norm()


def test_a_failing_rank_costs_one_case_not_the_session(pools: Pools) -> None:
    with pytest.raises(RankFailed, match="a rank fails on purpose"):
        pools[2].run("tests.parity.on_ranks:fail_on_one_rank")
    assert pools[2].run("tests.parity.on_ranks:world_size") == [2, 2]
