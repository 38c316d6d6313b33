"""Does a diff say what differs, by what it means for a run, and does it judge as a resumed run does?"""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from attrs import evolve

from forgeplan.analysis import analyse
from forgeplan.compiler import emit
from forgeplan.compiler.explain.difference import explain_diff
from forgeplan.diagnostics.refusal import Refusal
from forgeplan.plan.changes import ABSENT, differences, field_differences
from forgeplan.plan.codec import dumps, loads
from forgeplan.plan.diff import Diff, diff, to_json
from forgeplan.plan.execution_plan import ExecutionPlan
from forgeplan.runtime.plan_changes import changes_since
from forgeplan.spec.setting import Change
from tests.cli.commands import PLAN, ROOT

SCHEMA = json.loads((ROOT / "docs/schemas/diff.schema.json").read_text(encoding="utf-8"))

CHANGES: dict[str, tuple[tuple[str, ...], Change, set[str]]] = {
    "nothing": ((), Change.COSMETIC, set()),
    "checkpoints": (("checkpoint.keep=9",), Change.COSMETIC, {"checkpoint.keep"}),
    "rate": (("optimizer.lr=1e-3",), Change.RESUMABLE, {"optimizer.lr"}),
    "layout": (("mesh.tp=2",), Change.RESHARD, {"mesh.tp", "mesh.dp_shard", "batch.global"}),
    "seed": (("seed=1",), Change.NEW_RUN, {"seed"}),
    "all of it": (("seed=1", "mesh.tp=2"), Change.NEW_RUN, {"seed", "mesh.tp", "mesh.dp_shard", "batch.global"}),
    "recompute": (("apply=[recompute]",), Change.RESHARD, {"apply.recompute"}),
    "fsdp is there anyway": (("apply=[fsdp]",), Change.COSMETIC, set()),
    "schedule": (("schedule=linear",), Change.RESUMABLE, {"schedule"}),
}


def compiled(*overrides: str, text: str = PLAN) -> ExecutionPlan:
    analysis = analyse("small.forge", text=text, overrides=overrides)
    assert analysis.errors == ()
    return emit(analysis.jobs[0], sources=analysis.sources)


@pytest.fixture(scope="module")
def plain() -> ExecutionPlan:
    return compiled()


@pytest.mark.parametrize("name", CHANGES)
def test_a_diff_names_the_fields_and_their_class_and_a_run_judges_alike(
    name: str, plain: ExecutionPlan, tmp_path: Path
) -> None:
    overrides, change, paths = CHANGES[name]
    other = compiled(*overrides)
    found = diff(plain, other)
    jsonschema.validate(to_json(found), SCHEMA)
    assert {one.path for one in found.changes} == paths
    assert found.change is change
    back = diff(other, plain)
    assert ({one.path for one in back.changes}, back.change) == (paths, change)
    assert found.is_equal is (not paths)
    (tmp_path / "plan.json").write_bytes(dumps(plain))
    if found.resumes:
        assert len(changes_since(tmp_path, other)) == len(paths) + bool(paths)
    else:
        with pytest.raises(Refusal, match="FP1016"):
            changes_since(tmp_path, other)


@pytest.mark.parametrize("tokens", [2**63, 2**64, 2**63 - 1, 2**63 + 1])
def test_whole_numbers_of_any_size_come_back_and_differ_in_nothing(tokens: int) -> None:
    plan = compiled(text=PLAN.replace("budget    = { steps = 4 steps }", f"budget = {{ tokens = {tokens} tokens }}"))
    back = loads(dumps(plan))
    assert back.job.budget.tokens == tokens
    assert back.meaning == plan.meaning
    assert diff(plan, back).changes == ()
    near = compiled(
        text=PLAN.replace("budget    = { steps = 4 steps }", f"budget = {{ tokens = {tokens + 1} tokens }}")
    )
    [told] = [one for one in to_json(diff(back, near))["changes"] if one["path"] == "budget.tokens"]
    assert (told["old"], told["new"]) == (tokens, tokens + 1)
    assert f"{tokens:_} tokens → {tokens + 1:_} tokens" in explain_diff(diff(back, near), ("a", "b"), width=200)


def test_values_that_round_to_the_same_text_are_told_apart(plain: ExecutionPlan) -> None:
    near = evolve(plain.job, optimizer=evolve(plain.job.optimizer, lr=Fraction(3, 1000) + Fraction(1, 10**14)))
    [one] = field_differences(plain.job, near)
    assert one.text == "optimizer.lr: 0.003 → 300000000001/100000000000000"
    tiny = evolve(plain.job, optimizer=evolve(plain.job.optimizer, lr=Fraction(1, 3000)))
    tinier = evolve(plain.job, optimizer=evolve(plain.job.optimizer, lr=Fraction(1, 3000) + Fraction(1, 10**12)))
    page = explain_diff(Diff(plain, plain, tuple(field_differences(tiny, tinier)), (), ()), ("a", "b"), width=200)
    assert "1/3000 → " in page


def test_what_nobody_wrote_follows(plain: ExecutionPlan) -> None:
    found = diff(plain, compiled("mesh.tp=2"))
    assert {one.path for one in found.changes if one.follows} == {"mesh.dp_shard", "batch.global"}
    assert {one.name for one in found.consequences} >= {"data ranks", "tokens a step", "tokens of the run"}
    assert [(step.what, step.name) for step in found.program] == [("added", "tp")]
    assert diff(compiled("mesh.tp=2"), plain).program[0].what == "removed"


def test_a_component_that_is_there_on_one_side_is_told_by_its_name(plain: ExecutionPlan) -> None:
    more = compiled('sources={ counter = synthetic {}, web = tokens { path = "w.npy" } }', "mixture={ counter = 1 }")
    found = {one.path: one for one in differences(plain, more)}
    assert found["sources.web"].old is ABSENT
    assert not any(path.startswith("sources.web.") for path in found)


def test_what_weighs_more_than_the_component_it_comes_with_is_named(plain: ExecutionPlan) -> None:
    found = {
        one.path: one.change for one in differences(plain, compiled("apply=[fp8 { emulate = true, small = convert }]"))
    }
    assert found["apply.fp8"] is Change.RESHARD
    assert found["apply.fp8.recipe"] is Change.NEW_RUN


def test_a_program_that_differs_by_itself_is_another_layout(plain: ExecutionPlan) -> None:
    steps = tuple(evolve(op, offload=True) if op.name == "fsdp" else op for op in plain.program)
    found = diff(plain, evolve(plain, program=steps, meaning="0" * 64))
    assert (found.change, found.resumes, found.is_equal) == (Change.RESHARD, True, False)
    [step] = found.program
    assert step.options == {"offload": (False, True)}


def test_an_operation_that_stands_elsewhere_is_said_to_have_moved(plain: ExecutionPlan) -> None:
    first, *between, last = plain.program
    found = diff(plain, evolve(plain, program=(last, *between, first)))
    assert {(step.what, step.name) for step in found.program} == {("moved", first.name), ("moved", last.name)}
    assert f"~  {last.name}" in explain_diff(found, ("a", "b"))


def test_json_has_exact_values_and_no_key_for_a_side_without_the_field(plain: ExecutionPlan) -> None:
    said: dict[str, Any] = to_json(diff(plain, compiled("schedule=linear", "guard.clip=none")))
    by_path = {one["path"]: one for one in said["changes"]}
    assert by_path["guard.clip"] | {"new": None} == by_path["guard.clip"]
    assert (said["class"], said["resumes"], said["equal"]) == ("resumable", True, False)
    assert by_path["schedule"] == {
        "path": "schedule", "class": "resumable", "follows": False, "old": "cosine", "new": "linear"
    }  # fmt: skip


def test_a_run_that_looks_elsewhere_for_checkpoints_is_told_so(plain: ExecutionPlan) -> None:
    def page(*overrides: str) -> str:
        return explain_diff(diff(plain, compiled(*overrides)), ("a", "b"), width=200)

    assert "checkpoint.path = " not in page("mesh.tp=2")
    assert 'it needs `checkpoint.path = "runs/small"`' in page("mesh.tp=2", "checkpoint.path=elsewhere")
    assert "note:" not in page("seed=1", "checkpoint.path=elsewhere")
