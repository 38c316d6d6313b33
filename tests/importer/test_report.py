"""Is every key accounted for, with a reason where it is not taken as it is?"""

from __future__ import annotations

from typing import Any

import pytest

from forgeplan.diagnostics.refusal import UsageError
from forgeplan.importer.convert import FORMATS, convert
from forgeplan.importer.report import Outcome, Row, render, to_json
from forgeplan.importer.rules import Ignore, Join, Lose, Options, Take
from forgeplan.importing import Checked, import_plan
from tests.importer.test_configs import imported, job_of

TITAN = """
[model]
name = "llama3"
flavor = "debugmodel"
[training]
steps = 10
seq_len = 2048
[parallelism]
tensor_parallel_degree = 1
"""
KEMPNER = """
[model]
dim = 64
n_layers = 2
n_heads = 4
vocab_size = 256
max_seq_len = 128
[train]
max_steps = 10
seq_len = 128
[distributed]
dp_shard = 1
"""


MIXED = [("a/web", 2), ("b/web", 1), ("c/none", 1), ("d/3d", 0.5)]


def made(text: str, *more: str, format: str | None = None, **options: Any) -> Checked:
    """A configuration with further lines; each of `more` is `section.key = value`."""
    lines = text
    for statement in more:
        path, _, value = statement.partition(" = ")
        section, _, key = path.rpartition(".")
        entry = f"[{section}]\n"
        lines = (
            lines.replace(entry, f"{entry}{key} = {value}\n") if entry in lines else f"{lines}\n{entry}{key} = {value}"
        )
    return import_plan(lines, "some.toml", Options(**options), format)


def rows(found: Checked) -> dict[str, Row]:
    return {row.key: row for row in found.imported.report.rows}


def plan_of(found: Checked) -> Any:
    return job_of(found).plan


def test_what_has_no_equivalent_is_said_with_a_reason_and_the_rest_is_a_plan() -> None:
    found = imported("kempnerforge/vlm_muon")
    lost = {row.key: row.why for row in found.imported.report.of(Outcome.LOST)}
    assert set(lost) == {
        "plugins",
        "vision_encoder.type",
        "vision_encoder.path",
        "adapter.type",
        "vlm.arch",
        "vlm.max_text_len",
        "train.mixed_precision",
        "train.gradient_checkpoint",
        "optimizer.name",
        "optimizer.lr",
        "optimizer.muon_momentum",
        "data.hf_dataset_name",
        "data.hf_dataset_text_field",
        "data.anneal_start_step",
        "data.anneal_weights.books",
        "checkpoint.dyn_ckpt_window.start",
        "checkpoint.dyn_ckpt_window.stop",
        "checkpoint.load_path",
    }
    assert "vision towers" in lost["vlm.arch"]
    assert "choose its rate anew" in lost["optimizer.name"]
    plan = plan_of(found)
    assert float(plan.optimizer.lr) == 3e-4
    assert plan.precision.params == "bf16"


def test_a_plan_says_itself_what_it_lacks_and_assumes() -> None:
    text = imported("kempnerforge/vlm_muon").imported.text or ""
    head = text[: text.index("forge 1")]
    assert "optimizer.muon_momentum = 0.95" in head
    assert "1 × 8 devices (h100_node)" in head
    assert "choose the rate anew" in text[len(head) :]


def test_a_model_without_an_equivalent_gives_a_report_and_no_plan() -> None:
    found = imported("torchtitan/deepseek_v3_16b")
    report = found.imported.report
    assert found.imported.text is found.analysis is None
    assert "multi-head latent attention" in report.refused[0]
    assert {row.outcome for row in report.rows} == {Outcome.LOST, Outcome.UNREAD}
    assert "no plan can be made" in render(report, 80)


def test_an_unknown_flavor_names_the_known_ones() -> None:
    found = made(TITAN.replace("debugmodel", "9B"))
    assert "debugmodel, 8B, 70B, 405B" in found.imported.report.refused[0]


@pytest.mark.parametrize(
    ("text", "statement", "guess"),
    [
        (TITAN, "training.max_nrom = 1.0", "training.max_norm"),
        (KEMPNER, "train.grad_clip_nrom = 1.0", "train.grad_clip_norm"),
        (KEMPNER, "somewhere.else = 1", ""),
    ],
)
def test_a_key_that_is_not_known_is_said_with_a_guess(text: str, statement: str, guess: str) -> None:
    row = rows(made(text, statement))[statement.partition(" = ")[0]]
    assert row.outcome is Outcome.LOST
    assert f"did you mean `{guess}`" in row.why if guess else "did you mean" not in row.why


@pytest.mark.parametrize(
    ("text", "statement", "kind"),
    [
        (TITAN, 'training.local_batch_size = "8"', "a whole number"),
        (TITAN, "training.max_norm = true", "a number"),
        (TITAN, "compile.enable = 1", "true or false"),
        (TITAN, "optimizer.name = 3", "text"),
        (TITAN, "model.converters = [1]", "a list of strings"),
        (TITAN, "optimizer.lr = nan", "a number"),
        (KEMPNER, "train.grad_accum_steps = 1.5", "a whole number"),
        (KEMPNER, "optimizer.lr = inf", "a number"),
        (KEMPNER, "model.norm_eps = 1e-9999", "a number"),
    ],
)
def test_a_value_of_another_kind_is_one_message_that_names_the_key(text: str, statement: str, kind: str) -> None:
    key = statement.partition(" = ")[0]
    with pytest.raises(UsageError, match=rf"^some\.toml: {key} is .*, and must be {kind}$"):
        made(text, statement)


@pytest.mark.parametrize("text", [TITAN, KEMPNER])
def test_what_the_source_takes_by_default_is_taken_over(text: str) -> None:
    plan = plan_of(made(text))
    if text == TITAN:
        assert (plan.optimizer.lr, plan.batch.micro, plan.budget.steps) == (pytest.approx(8e-4), 8, 10)
        assert (plan.schedule.tag, plan.schedule.warmup.amount) == ("linear", 10)
        assert [(op.tag, op.mode, op.every) for op in plan.apply] == [("recompute", "every", 2)]
    else:
        assert (plan.optimizer.lr, plan.batch.micro, plan.seed) == (pytest.approx(3e-4), 8, 42)
        assert (plan.schedule.tag, plan.schedule.floor) == ("cosine", pytest.approx(0.1))
        assert (plan.precision.params, plan.precision.moments, plan.precision.reduce) == ("bf16", "bf16", "fp32")
        assert [op.tag for op in plan.apply] == ["compile"]
    assert plan.optimizer.decay_embeddings is True
    assert plan.metrics.sinks == ()


@pytest.mark.parametrize(
    ("text", "statement", "value"),
    [
        (TITAN, "training.mixed_precision_param = \"float32\"", ("precision.compute", "fp32")),
        (TITAN, "training.dtype = \"bfloat16\"", ("precision.params", "bf16")),
        (TITAN, "training.seed = 5", ("seed", 5)),
        (TITAN, "debug.seed = 6", ("seed", 6)),
        (TITAN, "metrics.log_freq = 3", ("metrics.every", 3)),
        (KEMPNER, "model.activation = \"relu\"", ("model.mlp", "relu")),
        (KEMPNER, "model.qk_norm = true", ("model.qk_norm", True)),
        (KEMPNER, "model.tie_embeddings = true", ("model.tie", True)),
        (KEMPNER, "data.pack_sequences = true", ("batch.pack", True)),
        (KEMPNER, "checkpoint.keep_last_n = 0", ("checkpoint.keep", "all")),
        (KEMPNER, "train.grad_accum_steps = 3", ("batch.accumulation", 3)),
        (KEMPNER, "train.mixed_precision = \"fp32\"", ("precision.params", "fp32")),
    ],
)  # fmt: skip
def test_a_key_reaches_its_field(text: str, statement: str, value: tuple[str, Any]) -> None:
    found: Any = plan_of(made(text, statement))
    for name in value[0].split("."):
        found = getattr(found, name)
    assert found == value[1]


def test_global_batch_size_counts_sequences_and_gives_the_accumulation() -> None:
    found = made(TITAN, "training.global_batch_size = 256", "training.local_batch_size = 4", nodes=2)
    plan = plan_of(found)
    assert (plan.batch.global_.amount, plan.batch.micro, plan.batch.accumulation) == (256, 4, 4)


def test_a_pipeline_takes_the_local_batch_in_microbatches() -> None:
    found = made(TITAN, "parallelism.pipeline_parallel_degree = 2", "training.local_batch_size = 8")
    plan = plan_of(found)
    assert (plan.batch.micro, plan.batch.accumulation, plan.mesh.pp, plan.mesh.dp_shard) == (1, 8, 2, 4)


def test_sources_of_the_same_name_stay_apart_and_take_names_of_the_language() -> None:
    tables = "".join(f'[[data.datasets]]\npath = "{path}"\nweight = {weight}\n' for path, weight in MIXED)
    found = import_plan(f"{tables}\n{KEMPNER}", "some.toml", Options())
    plan = plan_of(found)
    assert {name: source.path for name, source in plan.sources.items()} == {
        "web": "a/web/*.npy", "web_2": "b/web/*.npy", "source_none": "c/none/*.npy", "source_3d": "d/3d/*.npy"
    }  # fmt: skip
    assert {name: share.amount for name, share in plan.mixture.items()} == {
        "web": 2, "web_2": 1, "source_none": 1, "source_3d": pytest.approx(0.5)
    }  # fmt: skip


def test_float8_of_some_layers_keeps_their_names() -> None:
    found = made(
        TITAN.replace('name = "llama3"', 'name = "llama3"\nconverters = ["float8"]'),
        'float8.filter_fqns = ["output", "attention.wk", "attention.wv"]',
        "parallelism.data_parallel_shard_degree = 8",
    )
    [fp8] = [operation for operation in plan_of(found).apply if operation.tag == "fp8"]
    assert (fp8.exclude, fp8.small) == (("head", "*.attention.wk", "*.attention.wv"), "convert")


def test_flavors_that_keep_documents_apart_pack_them() -> None:
    plan = plan_of(made(TITAN.replace('"debugmodel"', '"debugmodel_flex_attn"')))
    assert (plan.batch.pack, plan.model.attention) == (True, "flex")


@pytest.mark.parametrize(
    ("options", "expected"),
    [({"nodes": 3}, (3, 8)), ({"nodes": 2, "devices_per_node": 4}, (2, 4)), ({"cluster": "cpu_host"}, (1, 2))],
)
def test_the_command_line_says_what_the_source_leaves_open(options: dict[str, Any], expected: tuple[int, int]) -> None:
    cluster = plan_of(made(TITAN, **options)).cluster
    assert (cluster.nodes, cluster.devices_per_node) == expected


@pytest.mark.parametrize(
    ("degree", "options", "expected"),
    [(12, {}, (2, 6)), (4, {}, (1, 4)), (16, {"devices_per_node": 4}, (4, 4)), (16, {"nodes": 1}, (1, 16))],
)
def test_degrees_that_multiply_to_a_number_of_ranks_say_the_machines(
    degree: int, options: dict[str, Any], expected: tuple[int, int]
) -> None:
    cluster = plan_of(made(TITAN, f"parallelism.data_parallel_shard_degree = {degree}", **options)).cluster
    assert (cluster.nodes, cluster.devices_per_node) == expected


@pytest.mark.parametrize(
    ("statement", "options", "message"),
    [
        ("parallelism.data_parallel_shard_degree = 8", {"nodes": 3}, "8 ranks, which --nodes 3 does not divide"),
        ("parallelism.data_parallel_shard_degree = 8", {"devices_per_node": 3}, "--devices-per-node 3 does not divide"),
        ("parallelism.data_parallel_shard_degree = 8", {"nodes": 2, "devices_per_node": 8}, "asks for 16"),
        ("parallelism.context_parallel_degree = 16", {"nodes": 1}, "a multiple of 16 ranks, and 1 × 8 devices have 8"),
    ],
)
def test_machines_that_do_not_fit_are_refused(statement: str, options: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        made(TITAN, statement, **options)


def test_a_model_too_large_for_one_machine_gets_as_many_as_it_needs() -> None:
    found = made(TITAN.replace("debugmodel", "70B"))
    assert plan_of(found).cluster.nodes == 2
    assert any("as few as hold the model" in text for text in found.imported.report.assumed)


def test_what_a_source_breaks_is_found_by_the_compiler() -> None:
    found = made(KEMPNER, "distributed.tp = 3")
    assert found.imported.text is not None
    assert found.analysis is not None
    assert [error.code for error in found.analysis.errors] == ["FP0412"]


@pytest.mark.parametrize("name", FORMATS)
def test_no_rule_is_a_word_without_a_reason(name: str) -> None:
    for key, rule in FORMATS[name].rules.items():
        if isinstance(rule, Take):
            assert rule.path, key
        else:
            assert isinstance(rule, Lose | Ignore | Join), key


def test_the_report_is_json_with_every_key() -> None:
    found = made(KEMPNER, "train.seed = 3")
    shown = to_json(found.imported.report)
    assert [entry["key"] for entry in shown["keys"]] == list(rows(found))
    assert {
        "key": "train.seed", "value": "3", "outcome": "taken", "became": "seed = 3", "why": None
    } in shown["keys"]  # fmt: skip


def test_names_of_files_become_names_of_plans() -> None:
    for path, name in {"7b-16gpu.toml": "plan_7b_16gpu", "none.toml": "plan_none", "a b.c.toml": "a_b_c"}.items():
        assert convert(KEMPNER, path, Options()).report.plan == name
