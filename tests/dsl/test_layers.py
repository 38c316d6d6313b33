"""Which layer decides a value?"""

from __future__ import annotations

import pytest

from forgeplan.spec.quantity import SHARE, Quantity
from tests.dsl.plans import CONTEXT, at, codes, extended, job_of, labelled, only, read, values


def test_strength_grows_from_base_to_plan_to_profile_to_command_line() -> None:
    body = "seed = 2\nprofile p { seed = 3 }"
    assert values(job_of("profile p { tokenizer = none }", top=""), "seed") == [0]
    assert values(job_of(body), "seed") == [2]
    assert values(job_of(body, profile="p"), "seed") == [3]
    assert values(job_of(body, "seed=4", profile="p"), "seed") == [4]


@pytest.mark.parametrize("written", ["runs/here", '"runs/here"', '"runs/${"here"}"'])
def test_a_text_on_the_command_line_may_stand_in_quotes(written: str) -> None:
    assert values(job_of("", f"checkpoint.path={written}"), "checkpoint.path") == ["runs/here"]


def test_a_path_with_a_character_that_no_path_has_is_an_error() -> None:
    fault = only(extended('checkpoint.path = "runs/a\\u{0}"'))
    assert (fault.code, fault.message) == ("FP0307", "`checkpoint.path` takes a path, and no path has a U+0000 in it")


def test_a_plan_extends_only_with_the_differences() -> None:
    job = job_of("model.context = 32Ki tokens\nbatch.length = 32Ki tokens")
    assert values(job, "model.context", "model.heads", "batch.length", "batch.micro") == [32768, 32, 32768, 4]


def test_a_whole_assignment_replaces_and_merges_nothing() -> None:
    loaded = extended("batch = { micro = 2 sequences, length = 4Ki tokens }")
    assert only(loaded).code == "FP0302"
    assert "one of `batch.global` or `batch.accumulation` is missing" in only(loaded).message


def test_profiles_are_inherited_by_extends_and_the_plan_s_own_is_stronger() -> None:
    text = CONTEXT + (
        "plan a extends context {\n profile p { seed = 1, model.layers = 2 }\n}\n"
        "plan b extends a {\n seed = 5\n profile p { seed = 2 }\n}\n"
    )
    job = read(text).job("b", "p")
    assert values(job, "seed", "model.layers") == [2, 2]


def test_a_default_is_computed_after_the_override_arrives() -> None:
    """Case C016."""
    text = CONTEXT + (
        "partial plan base extends context {\n"
        "  model = decoder { layers = 2, dim = 4_096, heads = 32, vocab = 300, context = 4Ki tokens }\n}\n"
        "plan a extends base { model.heads = 16 }\nplan b extends base { model.heads = 64 }\n"
    )
    loaded = read(text)
    assert codes(loaded) == []
    for name, heads in (("a", 16), ("b", 64)):
        job = loaded.job(name)
        assert values(job, "model.kv_heads", "model.head_dim") == [heads, 4_096 // heads]
        assert job.leaves["model.kv_heads"].origins[0].text == "self.heads"


def test_another_kind_of_component_drops_the_fields_of_the_old_kind() -> None:
    """Case C017."""
    text = CONTEXT + (
        "partial plan base extends context { schedule = wsd { decay = 20%, warmup = 1% } }\n"
        "plan a extends base { schedule = cosine {} }\n"
        "plan b extends base { schedule = cosine {}, schedule.decay = 10% }\n"
    )
    loaded = read(text)
    assert sorted(p for p in loaded.job("a").leaves if p.startswith("schedule")) == [
        "schedule",
        "schedule.floor",
        "schedule.warmup",
    ]
    assert loaded.job("a").leaves["schedule"].value == "cosine"
    assert loaded.job("a").leaves["schedule.warmup"].value.amount == 0
    fault = only(loaded)
    assert (fault.code, at(loaded, fault)) == ("FP0301", "decay")
    assert "`decay` is a field of the schedule `wsd`" in fault.help


def test_the_kind_of_a_component_can_be_set_on_the_command_line() -> None:
    job = job_of("schedule = wsd { decay = 20% }", "schedule=linear { warmup = 2% }")
    assert job.leaves["schedule"].value == "linear"
    assert "schedule.decay" not in job.leaves


def test_a_dotted_override_of_a_map_keeps_the_other_entries_and_a_whole_one_does_not() -> None:
    """Case C018."""
    text = CONTEXT + (
        'partial plan base extends context {\n  sources.code = text { path = "code" }\n'
        "  mixture = { web = 40%, code = 60% }\n}\n"
        "plan a extends base { mixture.web = 20% }\nplan b extends base { mixture = { web = 20% } }\n"
    )
    loaded = read(text)
    a, b = (loaded.job(name).leaves["mixture"].value for name in "ab")
    assert {k: v.amount * 100 for k, v in a.items()} == {"web": 20, "code": 60}
    assert {k: v.amount * 100 for k, v in b.items()} == {"web": 20}
    assert a["web"] == Quantity(a["web"].amount, SHARE)


def test_a_key_written_twice_is_one_error_with_both_places_and_values() -> None:
    """Case C001."""
    loaded = extended("batch = { length = 1Ki tokens, length = 256Ki tokens, micro = 1 sequences, accumulation = 1 }")
    fault = only(loaded)
    assert fault.code == "FP0303"
    assert labelled(loaded, fault) == ["length", "length"]
    assert "1Ki tokens and 256Ki tokens" in fault.message


def test_a_source_declared_twice_is_a_repeated_declaration() -> None:
    loaded = extended('sources.web = text { path = "a" }, sources.web = text { path = "b" }')
    assert only(loaded).code == "FP0202"


@pytest.mark.parametrize(
    "body",
    [
        "mesh = { dp_shard = 2 }\nmesh.dp_shard = 4",
        "mesh.dp_shard = 4\nmesh = { dp_shard = 2 }",
        "model = llama3_8b { rope = { theta = 1_000 } }\nmodel.rope = { theta = 2_000 }",
    ],
)
def test_two_values_of_equal_strength_are_an_error_in_either_order(body: str) -> None:
    loaded = extended(body)
    fault = only(loaded)
    assert fault.code == "FP0305"
    assert len(fault.labels) == 2


def test_equal_strength_with_equal_values_agrees() -> None:
    assert values(job_of("mesh = { dp_shard = 4 }\nmesh.dp_shard = 2 + 2"), "mesh.dp_shard") == [4]


def test_what_is_written_beside_a_reference_is_stronger_than_what_it_refers_to() -> None:
    assert values(job_of("model = llama3_8b\nmodel.context = 4Ki tokens"), "model.context") == [4096]


def test_the_command_line_must_agree_with_itself() -> None:
    loaded = extended("", "seed=1", "seed=2")
    assert only(loaded).code == "FP0305"
    assert codes(extended("", "seed=1", "seed=1")) == []
    assert codes(extended("", "peak_lr=1e-4", "peak_lr=2e-4")) == ["FP0305"]


def test_a_list_is_extended_and_an_item_reached_by_its_name() -> None:
    job = job_of(
        "apply = [recompute]\nprofile p { apply += [fsdp { reshard = never }], apply.recompute.mode = none }",
        profile="p",
    )
    assert values(job, "apply", "apply.recompute.mode", "apply.fsdp.reshard") == [
        ("recompute", "fsdp"),
        "none",
        "never",
    ]
    assert [type(item).__name__ for item in job.blocks["apply"]] == ["Recompute", "Fsdp"]


def test_an_item_of_a_list_is_deleted_by_its_name() -> None:
    job = job_of("apply = [recompute, fsdp]\nprofile p { delete apply.recompute }", profile="p")
    assert values(job, "apply") == [("fsdp",)]


def test_delete_takes_away_what_a_base_has_and_returns_to_the_default() -> None:
    body = "seed = 3\neval held_out { source = web, split = 1%, every = 100 steps }\n"
    body += "profile p { delete seed, delete eval.held_out }"
    job = job_of(body, profile="p")
    assert values(job, "seed") == [0]
    assert job.blocks["eval"] == {}


@pytest.mark.parametrize(
    ("body", "place"),
    [
        ("delete eval.heldout", "heldout"),
        ("delete seed", "seed"),
        ("model.rope.scaling.factor = 8", "model.rope.scaling.factor"),
        ('sources.wbe.path = "x"', "wbe"),
        ("apply.recompute.mode = none", "recompute"),
        ("seed += [1]", "seed"),
        ("mixture.web = 10%", "mixture.web"),
        ("let k = 3\nseed = k { x = 1 }", "k"),
    ],
)
def test_a_statement_about_something_that_is_not_there_is_an_error(body: str, place: str) -> None:
    loaded = extended(body)
    fault = only(loaded)
    assert fault.code == "FP0304"
    assert at(loaded, fault) == place


def test_both_of_two_fields_that_exclude_one_another_are_named_with_both_places() -> None:
    loaded = extended("batch.accumulation = 4")
    fault = only(loaded)
    assert fault.code == "FP0302"
    assert labelled(loaded, fault) == ["global", "batch.accumulation"]
    job = job_of("delete batch.global\nbatch.accumulation = 4")
    assert job.leaves["batch.global"].value.amount == 4 * 4 * 4096 * 4
    assert not job.leaves["batch.global"].written


def test_a_chain_of_three_hundred_plans_resolves() -> None:
    """Case C014."""
    chain = "plan p0 extends context {}\n" + "".join(
        f"plan p{i} extends p{i - 1} {{ seed = {i} }}\n" for i in range(1, 300)
    )
    loaded = read(CONTEXT + chain)
    assert codes(loaded) == []
    assert values(loaded.job("p299"), "seed") == [299]
    assert len(loaded.job("p299").leaves["seed"].origins) == 300
