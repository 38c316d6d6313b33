"""What does a name mean, and what is said when it means nothing?"""

from __future__ import annotations

import pytest

from forgeplan.diagnostics.suggest import distance, nearest
from tests.dsl.plans import CONTEXT, at, codes, extended, job_of, labelled, only, read, values


def test_a_let_around_it_is_found_before_one_of_the_file() -> None:
    assert values(job_of("let n = 2\nseed = n", top="let n = 1"), "seed") == [2]
    assert values(job_of("seed = n", top="let n = 1"), "seed") == [1]


def test_plan_fields_are_read_by_full_path_and_siblings_by_self() -> None:
    job = job_of("seed = model.layers + 1\nmodel.ffn = 2 * self.dim\nmodel.vocab = model.dim")
    assert values(job, "seed", "model.ffn", "model.vocab") == [33, 8192, 4096]
    loaded = extended("seed = length")
    assert only(loaded).code == "FP0201"
    assert only(loaded).help == ("a field is read by its full path: `batch.length`",)


def test_self_in_an_amended_value_is_the_amended_record() -> None:
    top = "let tall = decoder { layers = 2, dim = 64, heads = self.dim / 16, vocab = 300, context = 4Ki tokens }"
    job = job_of("model = tall { dim = 128 }", top=top)
    assert values(job, "model.heads", "model.head_dim") == [8, 16]
    assert values(job_of("model = tall\nmodel.dim = 256", top=top), "model.heads") == [16]


def test_members_and_components_come_last() -> None:
    job = job_of("precision.compute = fp32\nschedule = linear\nguard.nonfinite = stop")
    assert values(job, "precision.compute", "schedule", "guard.nonfinite") == ["fp32", "linear", "stop"]


def test_keywords_are_names_where_no_statement_can_begin() -> None:
    """Case C019."""
    job = job_of("let let = 1\nlet test = 2\nlet plan = 3\nseed = let + test + plan")
    assert values(job, "seed") == [6]
    loaded = extended("let x = 1\nseed = x.for")
    assert only(loaded).code == "FP0313"
    assert at(loaded, only(loaded)) == "for"


def test_a_source_can_be_called_like_a_keyword() -> None:
    job = job_of(
        'sources.error = text { path = "e" }\nmixture = { error = 50%, web = 50% }\n'
        "eval test { source = error, every = 5 steps }"
    )
    assert values(job, "eval.test.source") == ["error"]


def test_a_cycle_between_fields_is_named_with_its_whole_path() -> None:
    loaded = extended("model.heads = model.kv_heads * 4\nmodel.kv_heads = self.heads / 4")
    fault = only(loaded)
    assert fault.code == "FP0203"
    assert fault.message.endswith("`model.heads` → `model.kv_heads` → `model.heads`")
    assert labelled(loaded, fault) == ["kv_heads", "heads"]


def test_a_cycle_through_a_derived_value_is_named() -> None:
    loaded = extended("model.layers = floor(model.params / 1B)")
    fault = only(loaded)
    assert fault.code == "FP0203"
    assert "`model.params`" in fault.message


def test_a_cycle_between_lets_and_between_plans_is_named() -> None:
    loaded = read(CONTEXT + "let a = b\nlet b = c + 1\nlet c = a\nplan e extends context { seed = a }")
    assert only(loaded).message.endswith("`a` → `b` → `c` → `a`")
    loaded = read("forge 1\nplan a extends b {}\nplan b extends a {}\n")
    assert only(loaded).code == "FP0203"
    assert labelled(loaded, only(loaded)) == ["b", "a"]


@pytest.mark.parametrize(
    ("body", "code", "place", "help"),
    [
        ("model.tie = falsee", "FP0201", "falsee", None),
        ("schedule = cosin {}", "FP0210", "cosin", "did you mean `cosine`?"),
        ("schedule = adamw { lr = 1 }", "FP0210", "adamw", None),
        ("model = llama3_9b {}", "FP0201", "llama3_9b", "did you mean `llama3_8b`?"),
        ("eval e { source = wbe, every = 1 steps }", "FP0201", "wbe", "did you mean `web`?"),
        ("eval e { source = batch, every = 1 steps }", "FP0213", "batch", None),
        ("seed = mesh.dp_shrad", "FP0201", "dp_shrad", "did you mean `mesh.dp_shard`?"),
        ("seed = model.parms", "FP0201", "parms", "did you mean `model.params`?"),
        ("let bf16 = 2", "FP0208", "bf16", None),
        ("let adamw = 2", "FP0208", "adamw", None),
        ("let eval = 2", "FP0208", "eval", None),
        ("let a = 1\nlet a = 2", "FP0202", "a", None),
        ("eval e { source = web, every = 1 steps }\neval e { source = web, every = 1 steps }", "FP0202", "e", None),
        ("assert cluster.arch == sm91", "FP0311", "sm91", "did you mean `sm90`?"),
    ],
)
def test_a_name_that_means_nothing_is_reported_once_at_its_place(
    body: str, code: str, place: str, help: str | None
) -> None:
    loaded = extended(body)
    fault = only(loaded)
    assert (fault.code, at(loaded, fault)) == (code, place)
    if help:
        assert fault.help[0] == help


def test_an_unknown_plan_silences_what_its_base_might_have() -> None:
    loaded = read("forge 1\nplan a extends bas { seed = 1, mesh.dp_shrad = 3 }\npartial plan base {}\n")
    assert [(d.code, at(loaded, d)) for d in loaded.diagnostics] == [("FP0209", "bas"), ("FP0301", "dp_shrad")]
    assert loaded.diagnostics[0].help == ("did you mean `base`?",)


def test_the_command_line_holds_nothing_unknown() -> None:
    loaded = extended("", "peek_lr=1e-4", "mesh.dp_shrad=2", "optimizer.lr=1e-5")
    assert [(d.code, at(loaded, d)) for d in loaded.diagnostics] == [("FP0209", "peek_lr"), ("FP0209", "dp_shrad")]
    assert codes(read(CONTEXT + "plan a extends context {}", plan="b")) == ["FP0209"]
    assert codes(read(CONTEXT + "plan a extends context { profile smoke {} }", profile="smok")) == ["FP0209"]


def test_an_option_of_what_a_list_does_not_have_is_answered_in_the_form_of_its_place() -> None:
    inside = only(extended("apply = [recompute]\napply.tp.sequence = false"))
    assert inside.help == ("add it: `apply += [tp { sequence = … }]`",)
    outside = only(extended("apply = [recompute]", "apply.tp.sequence=false"))
    assert outside.help == ("name it, at its place among `recompute`: `apply=[…, tp { sequence = … }, …]`",)
    assert only(extended("", "apply.tp.sequence=false")).help == ("`apply=[tp { sequence = … }]`",)


def test_a_text_on_the_command_line_is_taken_literally() -> None:
    job = job_of("", "sources.web.path=/data/a b*.txt")
    assert values(job, "sources.web.path") == ["/data/a b*.txt"]


def test_edits_are_counted_with_swaps() -> None:
    assert distance("lenght", "length") == 1
    assert distance("abc", "abc") == 0
    assert distance("kitten", "sitting") == 3
    assert nearest("wegiht_decay", ["weight_decay", "warmup"]) == "weight_decay"
    assert nearest("zzz", ["weight_decay"]) is None


def test_entries_of_a_map_and_items_of_a_list_are_looked_for_by_their_bare_names() -> None:
    job = job_of("apply = [recompute]\nassert web in sources and not (code in sources) and recompute in apply")
    assert job.checks[0].holds


def test_the_command_line_can_declare_a_node_and_change_a_component() -> None:
    job = job_of("", "eval.late={ source = web, every = 3 steps }", "schedule=none")
    assert values(job, "eval.late.source", "schedule") == ["web", None]


def test_an_override_that_does_not_parse_is_reported_at_its_place() -> None:
    for text, code in (
        ('seed="', "FP0102"),
        ("seed=3 4", "FP0103"),
        ("seed=", "FP0209"),
        ("seed", "FP0209"),
        ("", "FP0209"),
    ):
        loaded = extended("", "model.layers=2", text)
        fault = only(loaded)
        assert fault.code == code, text
        assert fault.span is not None
        assert fault.span.start >= len("model.layers=2")
