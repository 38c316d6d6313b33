"""Do the ranks of a pipeline decide, evaluate, add up, save and resume like one process?"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from attrs import evolve

from forgeplan.plan.execution_plan import ExecutionPlan
from forgeplan.plan.mesh import Mesh
from forgeplan.plan.operations import Fsdp
from forgeplan.runtime.executor import build
from forgeplan.runtime.selftest.executed import train_and_report
from forgeplan.runtime.selftest.pool import Pools
from forgeplan.runtime.selftest.reference import train_reference
from forgeplan.runtime.selftest.rows.pipeline import PP2, PP2_FSDP2, stages
from forgeplan.spec.operation.pp import SCHEDULES
from forgeplan.spec.plan import Precision
from tests.parity import stages_on_ranks
from tests.parity.test_ranks import alone
from tests.runtime.tiny import decoder, execution_plan

HERE = "tests.parity.stages_on_ranks"


def plan_of(mesh: Mesh, schedule: str = "one_f_one_b", **fields: Any) -> ExecutionPlan:
    model = fields.setdefault("model", decoder())
    given: dict[str, Any] = {"dtype": "fp64", "accumulation": 4, "reshard": "never"} | fields
    return execution_plan(mesh=mesh, axes=stages(schedule, mesh.pp, model.layers) if mesh.pp > 1 else {}, **given)


@pytest.mark.parametrize("schedule", ["one_f_one_b", "zbv"])
def test_every_rank_skips_the_step_in_which_the_last_stage_has_a_nan(schedule: str, pools: Pools) -> None:
    """C109."""
    plan = plan_of(PP2, schedule, total_steps=4)
    answers = pools[2].run(f"{HERE}:train_with_nan_in_the_last_stage", plan, 2)
    wanted = train_reference(alone(plan), packed=False, left_out={2})
    for weights, num_skipped, samples, skipped in answers:
        assert (num_skipped, samples, skipped) == (1, 32, [False, True, False, False])
        for name, weight in weights.items():
            moved = wanted.weights[name] - wanted.initial[name]
            assert (weight - wanted.weights[name]).norm() <= 1e-9 * moved.norm(), name


def test_a_nan_in_the_first_step_leaves_no_trace_in_the_next(pools: Pools) -> None:
    """C109; torch's schedules begin with passes that infer shapes."""
    plan = plan_of(PP2, total_steps=2)
    skipped = pools[2].run(f"{HERE}:train_with_nan_in_the_last_stage", plan, 1)[0][3]
    assert skipped == [True, False]


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_an_evaluation_is_that_of_one_process_before_and_after_training(schedule: str, pools: Pools) -> None:
    """Five microbatches, which are no whole number of rounds."""
    plan = plan_of(PP2, schedule, total_steps=2)
    answers = pools[2].run(f"{HERE}:evaluate_before_and_after_training", plan, 5, True)
    (first, counted), (last, _) = stages_on_ranks.evaluate_before_and_after_training(alone(plan), 5, True)
    for (before, counted_before), (after, counted_after) in answers:
        assert (before, after) == (pytest.approx(first, rel=1e-9), pytest.approx(last, rel=1e-9))
        assert counted_before == counted_after == counted
    assert abs(first - last) > 1e-3


@pytest.mark.parametrize("mesh", [Mesh(pp=2, dp_shard=2), Mesh(pp=2, tp=2), Mesh(pp=2, cp=2)], ids=["fsdp", "tp", "cp"])
def test_an_evaluation_counts_every_label_once_on_all_axes(mesh: Mesh, pools: Pools) -> None:
    plan = plan_of(mesh, "interleaved", total_steps=1, model=decoder(pad_vocab=30), accumulation=2)
    answers = pools[4].run(f"{HERE}:evaluate_before_and_after_training", plan, 4 // mesh.data_ranks, False)
    wanted = stages_on_ranks.evaluate_before_and_after_training(alone(plan), 4, False)
    assert [counted for _, counted in answers[0]] == [counted for _, counted in wanted]
    assert [loss for loss, _ in answers[0]] == pytest.approx([loss for loss, _ in wanted], rel=1e-9)
    assert all(answer == answers[0] for answer in answers)


@pytest.mark.parametrize("interrupted", [False, True], ids=["whole", "interrupted"])
def test_an_evaluation_leaves_no_parameter_gathered(interrupted: bool, pools: Pools) -> None:
    plan = plan_of(PP2_FSDP2, "zbv")
    assert pools[4].run("tests.parity.on_ranks:shards_after_evaluation", plan, interrupted) == [[]] * 4


@pytest.mark.parametrize("schedule", ["one_f_one_b", "dualpipe_v"])
def test_evaluations_between_steps_change_no_bit_of_training(schedule: str, pools: Pools) -> None:
    plan = plan_of(PP2_FSDP2, schedule, total_steps=3)
    trained = pools[4].run("forgeplan.runtime.selftest.executed:train_and_report", plan, False)[0]
    with_evaluations = pools[4].run("tests.parity.on_ranks:train_between_evaluations", plan)[0]
    assert with_evaluations == list(zip(trained.losses, trained.norms, strict=True))


@pytest.mark.parametrize("schedule", ["one_f_one_b", "zbv"])
def test_packed_documents_do_not_see_one_another_in_any_stage(schedule: str, pools: Pools) -> None:
    """C041: other tokens in the first document change nothing in the second."""
    plan = plan_of(PP2, schedule, model=decoder(layers=4))
    one, other = (pools[2].run(f"{HERE}:loss_of_second_documents", plan, altered)[0] for altered in (False, True))
    assert one == other == pytest.approx(stages_on_ranks.loss_of_second_documents(alone(plan), False), rel=1e-12)


def test_ranks_full_of_nan_are_overwritten_with_the_values_of_one_process(pools: Pools) -> None:
    """C045, with pp 2 and tp 2."""
    model = decoder(layers=3, bias=True, norm="layer", qk_norm=True, pad_vocab=30)
    plan = plan_of(Mesh(pp=2, tp=2), "interleaved", model=model)
    filled = pools[4].run(f"{HERE}:fill_with_nan_then_initialise", plan)
    single = build(alone(plan), torch.device("cpu")).model
    for tensors in filled:
        assert tensors.keys() == dict(single.named_parameters()).keys()
        assert all(torch.equal(tensors[name], p) for name, p in single.named_parameters())


LAYOUTS = {
    "one process": (Mesh(), "one_f_one_b"),
    "pp 2": (Mesh(pp=2), "interleaved"),
    "pp 2, fsdp 2": (Mesh(pp=2, dp_shard=2), "zbv"),
    "pp 4": (Mesh(pp=4), "one_f_one_b"),
}


@pytest.mark.parametrize(
    ("before", "after"),
    [("pp 2", "pp 4"), ("pp 2", "one process"), ("one process", "pp 2, fsdp 2"), ("pp 2, fsdp 2", "pp 2")],
)
def test_a_run_goes_on_in_another_layout(before: str, after: str, pools: Pools, tmp_path: Path) -> None:
    """The state comes back bit for bit, and the steps that follow are those of the unbroken run."""
    first, second = (_layout(name) for name in (before, after))
    saved = _on_ranks(pools, first, "train_and_save", str(tmp_path), 2)[0]
    loaded, steps = _on_ranks(pools, second, "resume", str(tmp_path / "step-2"))[0]
    assert loaded.keys() == saved.keys()
    assert all(torch.equal(tensor, saved[name]) for name, tensor in loaded.items())
    wanted = train_reference(alone(first), packed=False)
    assert [loss for loss, _ in steps] == pytest.approx(wanted.losses[2:], rel=1e-9)
    assert [norm for _, norm in steps] == pytest.approx(wanted.norms[2:], rel=1e-9)


def _layout(name: str) -> ExecutionPlan:
    mesh, schedule = LAYOUTS[name]
    return plan_of(mesh, schedule, model=decoder(layers=6), micro=2 // mesh.data_ranks, total_steps=4)


def _on_ranks(pools: Pools, plan: ExecutionPlan, function: str, *args: Any) -> list[Any]:
    if plan.mesh.world == 1:
        return [getattr(stages_on_ranks, function)(plan, *args)]
    return pools[plan.mesh.world].run(f"{HERE}:{function}", plan, *args)


def test_a_checkpoint_that_no_stage_asks_for_or_that_lacks_a_stage_is_refused(pools: Pools, tmp_path: Path) -> None:
    small, large = (plan_of(PP2, model=decoder(layers=layers), total_steps=1) for layers in (2, 3))
    for plan, folder in ((small, tmp_path / "small"), (large, tmp_path / "large")):
        pools[2].run(f"{HERE}:train_and_save", plan, str(folder), 1)
    lacking = pools[2].run(f"{HERE}:refused_checkpoint", large, str(tmp_path / "small/step-1"))
    assert all("FP1015" in answer and "it lacks 36 of " in answer for answer in lacking)
    surplus = pools[2].run(f"{HERE}:refused_checkpoint", small, str(tmp_path / "large/step-1"))
    assert all("FP1015" in answer and "it holds 36 states that the plan does not have" in answer for answer in surplus)
    assert all("layers.2." in answer for answer in lacking + surplus)


@pytest.mark.parametrize("schedule", ["zero_bubble", "zbv"])
def test_gradients_of_split_backward_add_up_in_the_dtype_of_reduction(schedule: str, pools: Pools) -> None:
    """Under FSDP; looped_bfs has the same four stages and computes the gradients of weights with the others."""
    precision = Precision(params="fp32", compute="bf16", reduce="fp32", moments="fp32")
    split, full = (
        pools[4].run("forgeplan.runtime.selftest.executed:train_and_report", plan, False)[0].gradients
        for plan in (
            plan_of(PP2_FSDP2, name, precision=precision, accumulation=8, micro=1, total_steps=1)
            for name in (schedule, "looped_bfs")
        )
    )
    for name, gradient in full.items():
        assert (split[name] - gradient).norm() <= 1e-6 * gradient.norm(), name


@pytest.mark.parametrize("schedule", ["one_f_one_b", "zbv"])
def test_gradients_of_bf16_weights_add_up_in_the_dtype_of_reduction(schedule: str, pools: Pools) -> None:
    """Where no parameter is sharded: 64 parts, each rounded to bf16, are summed in fp32 as in one process."""
    precision = Precision(params="bf16", compute="fp32", reduce="fp32", moments="fp32")
    plan = plan_of(PP2, schedule, precision=precision, accumulation=64, micro=1, total_steps=1)
    trained = pools[2].run("forgeplan.runtime.selftest.executed:train_and_report", plan, False)[0]
    single = train_and_report(alone(plan), False)
    for name, gradient in single.gradients.items():
        assert (trained.gradients[name].float() - gradient.float()).norm() <= 1e-3 * gradient.float().norm(), name


@pytest.mark.parametrize("mesh", [Mesh(dp_shard=2), PP2_FSDP2], ids=["fsdp", "pp, fsdp"])
def test_parameters_in_host_memory_train_alike(mesh: Mesh, pools: Pools) -> None:
    plan = plan_of(mesh, "zbv", total_steps=3)
    program = tuple(evolve(op, offload=True) if isinstance(op, Fsdp) else op for op in plan.program)
    trained = pools[mesh.world].run(
        "forgeplan.runtime.selftest.executed:train_and_report", evolve(plan, program=program), False
    )[0]
    wanted = train_reference(alone(plan), packed=False)
    assert trained.losses == pytest.approx(wanted.losses, rel=1e-9)
    assert trained.norms == pytest.approx(wanted.norms, rel=1e-9)
