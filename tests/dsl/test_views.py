"""Which views does a file have, and what changes when a value does?"""

from __future__ import annotations

from pathlib import Path

import pytest

from forgeplan.analysis import analyse
from forgeplan.compiler import derived_values
from forgeplan.diagnostics.refusal import UsageError
from forgeplan.dsl.load import load
from forgeplan.spec import types as t
from forgeplan.spec.derived import Derived
from forgeplan.spec.job import ABSENT
from forgeplan.spec.quantity import SEQUENCES, SHARE, TOKENS, Quantity
from tests.dsl.plans import CONTEXT, codes, described, extended, job_of, only, read, values


def test_a_job_varies_as_if_the_value_were_on_the_command_line() -> None:
    job = job_of("")
    other = job.vary({"cluster.devices_per_node": 8, "batch.micro": 2})
    assert values(other, "mesh.dp_shard", "batch.accumulation", "batch.micro") == [8, 32, 2]
    assert other.leaves["batch.micro"].origin.layer == "command line"
    assert other.derived["mesh.data_ranks"] == 8
    assert values(job, "mesh.dp_shard", "batch.micro") == [4, 4]


def test_a_varied_job_can_be_varied_again() -> None:
    job = job_of("").vary({"model.layers": 2}).vary({"seed": 3})
    assert values(job, "model.layers", "seed") == [2, 3]


def test_varying_a_field_drops_those_that_it_excludes() -> None:
    job = job_of("").vary({"batch.accumulation": 2})
    assert job.leaves["batch.global"].value.amount == 2 * 4 * 4096 * 4
    job = job_of("").vary({"batch.global": Quantity(64, SEQUENCES)})
    assert job.leaves["batch.accumulation"].value == 4


def test_words_none_and_components_can_be_varied() -> None:
    job = job_of("checkpoint = { every = 1h }")
    assert values(job.vary({"mesh.dp_shard": "auto"}), "mesh.dp_shard") == [4]
    assert values(job.vary({"checkpoint.resume": "none"}), "checkpoint.resume") == ["none"]
    assert values(job.vary({"cluster.hbm": None}), "cluster.hbm") == [None]
    assert values(job.vary({"precision.compute": "fp32"}), "precision.compute") == ["fp32"]


def test_components_lists_and_maps_are_varied_by_name() -> None:
    job = job_of("mixture = { web = 100% }")
    assert values(job.vary({"schedule": "linear"}), "schedule", "schedule.floor") == ["linear", 0]
    assert values(job.vary({"apply": ("recompute", "fsdp")}), "apply", "apply.recompute.mode") == [
        ("recompute", "fsdp"),
        "full",
    ]
    share = Quantity(1, SHARE)
    assert values(job.vary({"mixture": {"web": share}}), "mixture") == [{"web": share}]
    assert values(job.vary({"mixture": None}), "mixture") == [None]


def test_what_is_written_can_be_taken_out() -> None:
    job = job_of("apply = [recompute { mode = full }, compile]\nbudget = { steps = 9 steps }\ntokenizer = byte {}")
    bare = job.vary({"apply.compile": ABSENT, "tokenizer": ABSENT})
    assert values(bare, "apply", "apply.recompute.mode", "tokenizer") == [("recompute",), "full", None]
    assert "apply.compile.backend" not in bare.leaves
    assert values(job, "apply") == [("recompute", "compile")]


def test_a_varied_value_that_is_rejected_is_absent() -> None:
    job = job_of("").vary({"model.layers": 0})
    assert "model.layers" not in job.leaves
    assert job.plan is None


def test_plans_profiles_and_cells_are_views() -> None:
    text = CONTEXT + (
        "plan a extends context { profile p { seed = 1 } }\nplan b extends a { profile q { seed = 2 } }\n"
        "partial plan c extends a {}\nsweep s over a { axis seed in [5] }\n"
    )
    loaded = read(text)
    assert loaded.plans == ("a", "b")
    assert [job.name for job in loaded.views] == ["a", "a@p", "a/s-0", "b", "b@p", "b@q"]
    assert [job.name for job in loaded.jobs] == ["a", "b", "a/s-0"]
    assert [job.name for job in read(text, profile="q").jobs] == ["b@q", "a/s-0"]
    assert [job.name for job in read(text, plan="b").views] == ["b", "b@p", "b@q"]
    assert loaded.job("b", "q").derived["run.name"] == "b@q"
    with pytest.raises(KeyError):
        loaded.job("nobody")


def test_derived_values_are_handed_in() -> None:
    seconds = {
        "plan.kind": Derived("plan.kind", t.Text(), (), lambda: "small", ""),
        "model.rows": Derived("model.rows", t.TOKEN_COUNT, ("model", "model.pad_vocab"), lambda m, p: m.layers * p, ""),
        "model.pad_vocab": Derived("model.pad_vocab", t.COUNT, ("model.vocab",), lambda v: v + 1, ""),
        "mesh.dp_shard": Derived("mesh.dp_shard", t.COUNT, (), lambda: 3, ""),
        "batch.accumulation": Derived("batch.accumulation", t.COUNT, ("mesh.dp_shard",), lambda d: d * 2, ""),
        "budget.steps": Derived("budget.steps", t.STEP_COUNT, (), lambda: None, ""),
    }
    text = CONTEXT + "plan a extends context { seed = model.rows / 1 token\n assert plan.kind != plan.name }\n"
    loaded = load("plan.forge", text, derived=seconds)
    assert described(loaded.diagnostics) == []
    job = loaded.job("a")
    assert values(job, "seed", "mesh.dp_shard", "batch.accumulation", "budget.steps") == [32 * 128_257, 3, 6, None]
    assert job.derived["model.rows"] == 32 * 128_257


def test_without_a_function_auto_stays_auto() -> None:
    derived = {"batch.accumulation": Derived("batch.accumulation", t.COUNT, (), lambda: 1, "")}
    job = load("plan.forge", CONTEXT + "plan a extends context {}", derived=derived).job("a")
    assert values(job, "mesh.dp_shard") == ["auto"]


def test_a_batch_can_be_computed_from_its_accumulation() -> None:
    job = job_of("delete batch.global\nbatch.accumulation = 2")
    assert job.leaves["batch.global"].value == Quantity(2 * 4 * 4096 * 4, TOKENS)


@pytest.mark.parametrize("name", ["missing.forge", "folder", "latin.forge"])
def test_a_file_that_cannot_be_read_is_a_usage_error(tmp_path: Path, name: str) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "latin.forge").write_bytes(b"forge 1\n# \xff\n")
    with pytest.raises(UsageError, match=name):
        analyse(str(tmp_path / name))


def test_language_and_compiler_speak_together_and_each_fault_once() -> None:
    fields = "batch.global = 1_000_000 tokens, profile p {}, profile q { seed = true }"
    text = CONTEXT + f"plan a extends context {{ {fields} }}\n"
    found = analyse("plan.forge", text=text).diagnostics
    assert [(d.code, d.view) for d in found] == [("FP0407", ""), ("FP0307", "a@q")]


def test_a_default_without_an_explanation_explains_itself() -> None:
    text = CONTEXT + "plan a extends context { model.heads = 24, model.kv_heads = 8 }\n"
    assert [d.code for d in analyse("plan.forge", text=text).diagnostics] == ["FP0501"]


def test_repeated_names_are_reported() -> None:
    assert codes(extended("profile p {}\nprofile p {}")) == ["FP0202"]
    assert only(read(CONTEXT + "plan a extends context {}\nplan a extends context {}")).code == "FP0202"
    assert only(read(CONTEXT + "let a = 1\nparam a: Int = 1\n")).code == "FP0202"


def test_the_sources_of_a_job_are_hashed_by_content() -> None:
    from hashlib import sha256

    text = CONTEXT + "plan a extends context {}\n"
    job = read(text).job("a")
    assert job.sources["plan.forge"] == sha256(text.encode()).hexdigest()
    assert set(job.sources) == {"plan.forge", "std:clusters", "std:models"}


def test_every_derived_value_reads_what_exists() -> None:
    job = job_of("")
    for path, derived in derived_values().items():
        assert path in job.leaves or path in job.derived, path
        assert derived.doc, path
