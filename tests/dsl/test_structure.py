"""Which values fit which fields? Nothing is converted silently."""

from __future__ import annotations

from fractions import Fraction

import pytest

from forgeplan.spec.quantity import SECONDS, SEQUENCES, SHARE, STEPS, TOKENS, Quantity
from tests.dsl.plans import at, described, extended, job_of, labelled, only


@pytest.mark.parametrize(
    ("body", "code", "place", "part"),
    [
        ('optimizer.lr = "5e-4"', "FP0307", '"5e-4"', "takes a number, not a text"),
        ("model.tie = 1", "FP0307", "1", "takes true or false"),
        ("model.layers = 3.9", "FP0307", "3.9", "takes a whole number, not 3.9"),
        ("model.layers = true", "FP0307", "true", "not `true`"),
        ("model.layers = none", "FP0307", "none", "not none"),
        ("optimizer.betas = [0.9]", "FP0307", "[0.9]", "a list of 2"),
        ("optimizer.betas = 0.9", "FP0307", "0.9", "a list of 2"),
        ('precision.compute = "bf16"', "FP0307", '"bf16"', "not a text"),
        ("sources.web.path = 3", "FP0307", "3", "takes a path"),
        ("optimizer = { lr = 3e-4 }", "FP0307", "{", "takes an optimizer, not a record"),
        ("mesh = 3", "FP0307", "3", "takes a record"),
        ("precision = bf16", "FP0307", "bf16", "takes a record"),
        ("checkpoint = { every = 5 steps, keep = None }", "FP0307", "None", "takes a whole number or `all`"),
        ("mesh = adamw { lr = 3 }", "FP0307", "adamw", "takes a record"),
        ("apply = recompute", "FP0307", "recompute", "takes a list"),
        ("apply += recompute", "FP0307", "recompute", "`+=` takes a list"),
        (
            "batch.global = 8GiB",
            "FP0308",
            "8GiB",
            "`8GiB` measures bytes, and `batch.global` takes tokens or sequences",
        ),
        ("batch.length = 4 sequences", "FP0308", "4 sequences", "counts sequences, and `batch.length` takes tokens"),
        ("optimizer.lr = 5%", "FP0308", "5%", "`5%` is a share"),
        ("model.layers = 3 tokens", "FP0308", "3 tokens", "counts tokens"),
        ("batch.micro = 4", "FP0309", "4", "takes sequences, and 4 has no unit"),
        ("cluster.hbm = 80", "FP0309", "80", "takes bytes"),
        ("cluster.hbm = 80GQ", "FP0309", "GQ", "is no unit"),
        ("schedule = cosine { floor = 0.1 }", "FP0309", "0.1", "takes a share"),
        ("optimizer.betas = [0.9, 1.0]", "FP0310", "1.0", "from 0 to below 1"),
        ("model.heads = 0", "FP0310", "0", "at least 1"),
        ("optimizer.lr = 0", "FP0310", "0", "above 0"),
        (
            "model.rope.scaling = ntk { factor = 1e300, original = 4Ki tokens }",
            "FP0310",
            "1e300",
            "from 1 to 1_000_000",
        ),
        ("seed = -1", "FP0310", "-1", "at least 0"),
        ("precision.compute = bfloat16", "FP0311", "bfloat16", "not `bfloat16`"),
        ("precision.compute = sm90", "FP0311", "sm90", "not `sm90`"),
        ("model.mlp = swiglue", "FP0311", "swiglue", "not `swiglue`"),
        ("mesh.dp_shard = -1", "FP0311", "-1", "not -1"),
        ("mesh.dp_shard = atuo", "FP0311", "atuo", "not `atuo`"),
        ("model.heads = self.dim / 96", "FP0312", "self.dim / 96", "128/3"),
        ("batch.global = 2Mi tokens / 3", "FP0312", "2Mi tokens / 3", "must be whole"),
        ("schedule = cosine { warmup = 30min }", "FP0704", "30min", "not measured in time"),
        ("batch = { global = 2Mi tokens, micro = 4 sequences }", "FP0302", "{", "`batch.length` is missing"),
        ("schedule = wsd {}", "FP0302", "wsd", "`schedule.decay` is missing"),
        ("delete optimizer.lr", "FP0302", "adamw", "`optimizer.lr` is missing"),
        ("model.params = 8B", "FP0306", "model.params", "derived value"),
        ("flops.per_token = 3", "FP0306", "flops.per_token", "derived value"),
        ("eval.x = { source = web, every = 1 steps }", "FP0106", "eval.x", "declares one of several nodes"),
        ('sources.web.path = ""', "FP0307", '""', "empty"),
    ],
)
def test_what_does_not_fit_is_one_error_at_its_place(body: str, code: str, place: str, part: str) -> None:
    loaded = extended(body)
    fault = only(loaded)
    assert (fault.code, at(loaded, fault)) == (code, place)
    assert part in fault.message


@pytest.mark.parametrize(
    ("body", "replaced", "by"),
    [
        ('optimizer.lr = "5e-4"', '"5e-4"', "5e-4"),
        ('precision.compute = "bf16"', '"bf16"', "bf16"),
        ("model.tie = 1", "1", "true"),
        ("batch.micro = 4", "", " sequences"),
        ("batch.micro = 1", "", " sequence"),
        ("schedule = cosine { floor = 0.1 }", "0.1", "10%"),
        ("precision.compute = bfloat16", "bfloat16", "bf16"),
        ("mesh.dp_shard = -1", "-1", "auto"),
    ],
)
def test_a_fix_makes_the_value_fit(body: str, replaced: str, by: str) -> None:
    loaded = extended(body)
    (fix,) = only(loaded).fixes
    (edit,) = fix.edits
    source = loaded.sources.get(edit.span.file)
    assert source is not None
    assert (source.text[edit.span.start : edit.span.end], edit.replacement) == (replaced, by)
    mended = source.text[: edit.span.start] + edit.replacement + source.text[edit.span.end :]
    assert described(extended(mended.split("context {\n")[-1].rstrip().removesuffix("}")).diagnostics) == []


def test_values_become_the_python_values_that_the_schema_names() -> None:
    job = job_of(
        "schedule = cosine { warmup = 3%, floor = 10% }\n"
        "checkpoint = { every = 30min, keep = all, resume = 100 steps }\n"
        "eval e { source = web, split = 1%, every = 500 steps }\nmodel.window = 1Ki tokens\nmixture = { web = 100% }"
    )
    plan = job.plan
    assert plan is not None
    assert plan.schedule.warmup == Quantity(Fraction(3, 100), SHARE)
    assert plan.schedule.floor == Fraction(1, 10)
    assert plan.checkpoint is not None
    assert plan.checkpoint.every == Quantity(1800, SECONDS)
    assert (plan.checkpoint.keep, plan.checkpoint.resume) == ("all", 100)
    assert plan.eval["e"].every == Quantity(500, STEPS)
    assert plan.eval["e"].batches == "all"
    assert plan.model.window == 1024
    assert plan.mixture == {"web": Quantity(1, SHARE)}
    assert plan.batch.global_ == Quantity(2**21, TOKENS)
    assert plan.optimizer.betas == (Fraction(9, 10), Fraction(19, 20))
    assert plan.guard.nonfinite.budget == 10
    assert plan.cluster.hbm == 140 * 2**30
    assert isinstance(plan.seed, int)


def test_none_is_a_member_where_the_field_says_so() -> None:
    job = job_of("checkpoint = { every = 1h, resume = none }\napply = [recompute { mode = none }]\nschedule = none")
    assert job.leaves["checkpoint.resume"].value == "none"
    assert job.leaves["apply.recompute.mode"].value == "none"
    assert job.leaves["schedule"].value is None


def test_the_batch_counts_sequences_or_tokens() -> None:
    job = job_of("batch.global = 512 sequences")
    assert job.leaves["batch.global"].value == Quantity(512, SEQUENCES)
    assert job.leaves["batch.accumulation"].value == 512 // (4 * 4)


def test_a_missing_field_that_was_deleted_says_where() -> None:
    loaded = extended("delete batch.micro")
    assert labelled(loaded, only(loaded)) == ["{", "batch.micro"]


def test_a_plan_without_anything_lists_what_it_needs_and_nothing_below() -> None:
    from tests.dsl.plans import read

    loaded = read("forge 1\nplan a {}\n")
    assert [d.message.split("`")[1] for d in loaded.diagnostics] == [
        "batch",
        "budget",
        "cluster",
        "model",
        "optimizer",
        "sources",
    ]


def test_a_misspelt_required_field_is_not_also_missing() -> None:
    loaded = extended("batch = { gobal = 2Mi tokens, micro = 4 sequences, length = 4Ki tokens }")
    assert described(loaded.diagnostics) == ["FP0301: `batch` has no field `gobal`"]


def test_a_default_that_comes_out_as_a_fraction_is_left_to_the_invariant_about_it() -> None:
    loaded = extended("model.heads = 24\nmodel.kv_heads = 8")
    assert loaded.diagnostics == ()
    job = loaded.job("example")
    assert job.plan is None
    assert "model.head_dim" not in job.leaves
    (view,) = loaded.resolved()
    assert [d.code for d in view.unclaimed] == ["FP0312"]


@pytest.mark.parametrize("body", ["budget.steps = none", "budget = { steps = none, tokens = 160B tokens }"])
def test_steps_that_are_none_follow_from_the_tokens(body: str) -> None:
    """160B tokens in steps of 2Mi: 76,293.9…, and the last one is whole. A run without an end is never meant."""
    assert job_of(body).leaves["budget.steps"].value == 76_294
    assert job_of("", "budget.steps=none").leaves["budget.steps"].value == 76_294


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("guard.clip", "1e400"),
        ("optimizer.lr", "1e309"),
        ("optimizer.eps", "1e-400"),
        ("optimizer.betas", "[0, 0.99999999999999999999]"),
        ("model.dropout", "0.99999999999999999999"),
        ("schedule.floor", "1e-999% + 100%"),
        ("eval.e.split", "99.9999999999999999999999%"),
    ],
)
def test_a_number_that_leaves_its_range_as_a_float_is_refused(field: str, value: str) -> None:
    """Numbers of a plan are exact; the executor computes with the nearest float, which has the same range."""
    loaded = extended(f"eval e {{ source = web, every = 1 steps }}\n{field} = {value}")
    assert only(loaded).code == "FP0310", described(loaded.diagnostics)


def test_the_neighbours_of_a_number_that_is_not_whole_are_in_range() -> None:
    assert only(extended("checkpoint.every = 0.5 steps")).help == ("`1 step`",)
    assert only(extended("model.layers = 0.5")).help == ("`1`",)
    assert only(extended("model.layers = 2.5")).help == ("`2` or `3`",)


@pytest.mark.parametrize(
    ("body", "help"),
    [
        ("precision = bf16", "a record says it for each of its fields: `precision = { params = …, compute = bf16 }`"),
        ("batch.micro = 4 tokens", "with the unit that fits: `batch.micro = … sequences`"),
        ("model.layers = 3 tokens", "as a plain number: `3`"),
        ("batch.global = 2mi tokens", "did you mean `2Mi tokens`?"),
        ("optimizer.betas = (0.9, 0.95)", "a list is `[0.9, 0.95]`"),
    ],
)
def test_a_value_in_the_wrong_form_is_answered_by_the_right_form(body: str, help: str) -> None:
    assert only(extended(body)).help == (help,)


@pytest.mark.parametrize("override", ["batch.global=1e30 tokens", "batch.micro=1e20 sequences"])
def test_a_batch_that_no_computer_can_count_is_an_error(override: str) -> None:
    assert "FP0310" in {fault.code for fault in extended("", override).diagnostics}
