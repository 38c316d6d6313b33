"""Which changes of a plan may a run take, and which make another run?"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve

from forgeplan.diagnostics.refusal import Refusal
from forgeplan.plan.changes import field_differences
from forgeplan.plan.codec import dumps
from forgeplan.plan.execution_plan import ExecutionPlan
from forgeplan.plan.hashes import seal
from forgeplan.runtime.plan_changes import changes_since
from forgeplan.spec.loss.cross_entropy import CrossEntropy
from forgeplan.spec.plan import Eval, Plan
from forgeplan.spec.quantity import NUMBER, SEQUENCES, STEPS, TOKENS, Quantity
from forgeplan.spec.schedule.shapes import Wsd
from forgeplan.spec.setting import Change
from forgeplan.spec.source.files import Tokens
from forgeplan.spec.tokenizer.byte import Byte
from tests.faults.small_plan import small_plan
from tests.runtime import tiny

EVERY = Quantity(5, STEPS)


def batch(**fields: Any) -> Callable[[Plan], Plan]:
    return lambda job: evolve(job, batch=evolve(job.batch, **fields))


def set_to(**fields: Any) -> Callable[[Plan], Plan]:
    return lambda job: evolve(job, **fields)


NEW_RUNS: dict[str, Callable[[Plan], Plan]] = {
    "seed": set_to(seed=8),
    "batch.length": batch(length=8),
    "batch.pack": batch(pack=True),
    "loss.z": set_to(loss=CrossEntropy(z=Fraction(1, 100), mtp=Fraction(3, 10))),
    "mixture.made": set_to(mixture={"made": Quantity(Fraction(1), NUMBER)}),
    "sources.made.noise": lambda job: evolve(job, sources={"made": evolve(job.sources["made"], noise=Fraction(0))}),
    "sources.made": set_to(sources={"made": Tokens("web.bin", "uint16", shuffle=True)}),
    "tokenizer": set_to(tokenizer=Byte()),
    "precision.params": lambda job: evolve(job, precision=evolve(job.precision, params="bf16")),
    "model.dropout": lambda job: evolve(job, model=evolve(job.model, dropout=Fraction(1, 10))),
    "eval.held_out.split": set_to(eval={"held_out": Eval("made", Fraction(1, 4), EVERY, 2)}),
}
TAKEN: dict[str, Callable[[Plan], Plan]] = {
    "optimizer.lr": lambda job: evolve(job, optimizer=evolve(job.optimizer, lr=Fraction("1e-3"))),
    "schedule": set_to(schedule=Wsd(tiny.steps(2), tiny.steps(1), "sqrt", Fraction(0))),
    "mesh.dp_shard": lambda job: evolve(job, mesh=evolve(job.mesh, dp_shard=2)),
    "batch.micro": batch(micro=1),
    "batch.global": batch(global_=Quantity(4, SEQUENCES)),
    "budget.steps": lambda job: evolve(job, budget=evolve(job.budget, steps=99)),
    "eval.all.source": set_to(eval={"all": Eval("made", None, EVERY, 2)}),
}


def changed(plan: ExecutionPlan, change: Callable[[Plan], Plan]) -> ExecutionPlan:
    return seal(evolve(plan, job=change(plan.job)))


def written(plan: ExecutionPlan, folder: Path) -> Path:
    (folder / "plan.json").write_bytes(dumps(plan))
    return folder


@pytest.mark.parametrize("path", NEW_RUNS)
def test_what_changes_the_function_or_the_data_is_refused_by_name(path: str, tmp_path: Path) -> None:
    plan = small_plan()
    with pytest.raises(Refusal) as refused:
        changes_since(written(plan, tmp_path), changed(plan, NEW_RUNS[path]))
    assert refused.value.code.id == "FP1016"
    assert f"\n  {path}: " in refused.value.message
    assert str(tmp_path / "plan.json") in refused.value.help[0]
    assert "another name or another `checkpoint.path`" in refused.value.help[1]


@pytest.mark.parametrize("path", TAKEN)
def test_what_a_run_can_take_is_listed(path: str, tmp_path: Path) -> None:
    plan = small_plan()
    heading, *lines = changes_since(written(plan, tmp_path), changed(plan, TAKEN[path]))
    assert heading == "the plan has changed since this checkpoint:"
    assert any(line.startswith(f"  {path}: ") for line in lines)


def test_values_are_shown_as_a_plan_writes_them() -> None:
    job = small_plan().job
    now = evolve(
        job,
        optimizer=evolve(job.optimizer, lr=Fraction("3e-4"), betas=(Fraction("0.9"), Fraction("0.99"))),
        checkpoint=evolve(job.checkpoint, every=None),
        tokenizer=Byte(),
    )
    assert [(d.text, d.change) for d in field_differences(job, now)] == [
        ("checkpoint.every: 4 steps → none", Change.COSMETIC),
        ("optimizer.betas: [0.9, 0.95] → [0.9, 0.99]", Change.RESUMABLE),
        ("optimizer.lr: 0.01 → 0.0003", Change.RESUMABLE),
        ("tokenizer: none → byte", Change.NEW_RUN),
    ]


def test_the_same_batch_in_other_words_is_no_difference() -> None:
    job = small_plan().job
    size = job.batch.global_
    assert size.dimension == SEQUENCES
    in_tokens = Quantity(size.amount * job.batch.length, TOKENS)
    assert field_differences(job, evolve(job, batch=evolve(job.batch, global_=in_tokens))) == []
