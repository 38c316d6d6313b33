"""Is the page of a plan right, and does it fit?"""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion

from forgeplan.compiler import emit
from forgeplan.compiler.explain import explain, explain_all, explain_path
from forgeplan.compiler.explain.memory import MANY_CLASSES
from forgeplan.diagnostics.refusal import UsageError
from forgeplan.diagnostics.source import Sources
from forgeplan.diagnostics.span import COMMAND_LINE, NOWHERE, Span
from forgeplan.plan.codec import dumps
from forgeplan.plan.operations import Fp8
from forgeplan.plan.sharding import division
from forgeplan.plan.verify import read
from forgeplan.spec.provenance import Leaf, Origin
from tests.compiler.jobs import evolve, job, share, steps

SEVENTY = {
    "cluster.nodes": 8, "cluster.devices_per_node": 8, "model.layers": 80, "model.dim": 8192, "model.heads": 64,
    "model.ffn": 28_672, "mesh.dp_replicate": 2, "batch.micro": 2, "apply": {"recompute": 0},
    "schedule.warmup": share(3), "schedule.floor": Fraction(1, 10), "checkpoint.every": steps(1000),
    "eval": {"held_out": 0}, "eval.held_out.source": "web", "eval.held_out.split": Fraction(1, 100),
    "eval.held_out.every": steps(500), "eval.held_out.batches": 50,
}  # fmt: skip

UNUSUAL: dict[str, dict[str, Any]] = {
    "one device": {"cluster.devices_per_node": 1},
    "uneven shards": {"cluster.devices_per_node": 3, "batch.global": ..., "batch.accumulation": 2},
    "many ranks": {
        "cluster.nodes": 16_384,
        "cluster.devices_per_node": 8,
        "batch.global": ...,
        "batch.accumulation": 1,
    },
    "wall time alone": {"budget.tokens": None, "budget.wall": Fraction(7200), "schedule": "constant"},
    "no schedule": {"schedule": None},
    "one step": {"budget.tokens": 1},
    "no hbm": {"cluster.hbm": None},
    "tied": {"model.tie": True},
    "405B": {
        "cluster.nodes": 256,
        "model.layers": 126,
        "model.dim": 16_384,
        "model.heads": 128,
        "model.ffn": 53_248,
        "model.norm": "layer",
        "model.bias": True,
        "batch.micro": 1,
        "budget.tokens": 10**13,
    },
}
MIXTRAL = {
    "cluster.nodes": 4, "cluster.devices_per_node": 8, "model.vocab": 32_000, "model.moe.experts": 8,
    "model.moe.top_k": 2, "mesh.dp_replicate": 2, "mesh.dp_shard": 4, "mesh.cp": 2, "mesh.tp": 2, "mesh.ep": 4,
    "apply": {"fp8": 0, "recompute": 0}, "batch.micro": 1,
}  # fmt: skip
DEEPSEEK = {
    **MIXTRAL, "model.layers": 6, "model.mtp": 1, "model.moe.experts": 64, "model.moe.ffn": 1408, "model.moe.shared": 2,
    "model.moe.first_dense": 1, "model.moe.router": "sigmoid_topk", "model.moe.groups": 8, "model.moe.group_limit": 4,
    "model.moe.top_k": 6, "apply": {"fp8": 0, "fsdp": 0}, "apply.fp8.all_gather": True, "apply.fsdp.offload": True,
}  # fmt: skip
PIPED = {
    "cluster.nodes": 4, "cluster.devices_per_node": 8, "mesh.pp": 4, "mesh.cp": 2, "mesh.tp": 2, "batch.global": ...,
    "batch.accumulation": 12, "batch.micro": 1, "apply": {"pp": 0}, "apply.pp.schedule": "interleaved",
    "apply.pp.stages_per_rank": 2,
}  # fmt: skip
LAYOUTS: dict[str, dict[str, Any]] = {
    "Mixtral": MIXTRAL,
    "like DeepSeek": DEEPSEEK,
    "pipeline": PIPED,
    "cuts": {**PIPED, "apply.pp.schedule": "one_f_one_b", "apply.pp.stages_per_rank": 1, "apply.pp.cuts": (0, 1, 31)},
    "pipeline of one rank a stage": {**PIPED, "cluster.nodes": 1, "cluster.devices_per_node": 4, "mesh.cp": 1,
                                     "mesh.tp": 1},
    "many ranks in a pipeline": {**PIPED, "cluster.nodes": 16_384, "batch.accumulation": 8},
    "tp alone": {"mesh.tp": 4, "apply": {"tp": 0}, "apply.tp.sequence": False},
    "never freed": {"apply": {"fsdp": 0}, "apply.fsdp.reshard": "never"},
    "replicated keys": {"cluster.devices_per_node": 8, "model.kv_heads": 4, "mesh.tp": 8, "apply": {"tp": 0},
                        "apply.tp.kv": "replicate"},
}  # fmt: skip
PAGES = {"70B": SEVENTY, **UNUSUAL, **LAYOUTS}


@pytest.mark.parametrize("changes", [MIXTRAL, DEEPSEEK, PIPED], ids=["Mixtral", "like DeepSeek", "pipeline"])
def test_the_pages_of_layouts_are_those_that_were_looked_at(
    changes: dict[str, Any], snapshot: SnapshotAssertion
) -> None:
    page = explain(emit(job(changes)))
    assert page[page.index("── MODEL") : page.index("── SCHEDULE")] == snapshot


def test_the_page_of_a_large_plan(snapshot: SnapshotAssertion) -> None:
    assert explain(emit(job(SEVENTY))) == snapshot


@pytest.mark.parametrize("width", [40, 80, 120])
@pytest.mark.parametrize("changes", PAGES.values(), ids=PAGES)
def test_no_line_is_wider_than_the_page(changes: dict[str, Any], width: int) -> None:
    for line in explain(emit(job(changes)), width).splitlines():
        assert len(line) <= max(width, 80)


@pytest.mark.parametrize("changes", PAGES.values(), ids=PAGES)
def test_the_exact_numbers_of_the_plan_are_on_the_page(changes: dict[str, Any]) -> None:
    plan = emit(job(changes))
    page = explain(plan, 100)
    wanted = [plan.estimates.num_parameters, plan.estimates.tokens_per_step, *([plan.steps] if plan.steps else [])]
    for ranks in plan.rank_classes[: 1 + MANY_CLASSES]:
        wanted += [ranks.parameter_bytes, ranks.gradient_bytes, ranks.optimizer_bytes, ranks.state_bytes]
    shown = {int(number.replace(",", "")) for number in re.findall(r"\d[\d,]*", page)}
    assert set(wanted) <= shown


def test_every_step_of_the_program_is_told_in_order() -> None:
    page = explain(emit(job(SEVENTY)))
    places = [page.index(f"  {i}  {name}") for i, name in enumerate(("build", "recompute", "fsdp", "materialise"), 1)]
    assert places == sorted(places)


def page_of(changes: dict[str, Any]) -> str:
    """The page with single blanks, so that no sentence is broken."""
    return " ".join(explain(emit(job(changes))).split())


def test_the_stages_and_the_waiting_of_a_published_split_are_told() -> None:
    """Four stages of 80 layers are 20, 21, 20 and 19; with 8 microbatches 1F1B waits 3 of 11 slots."""
    page = page_of({**SEVENTY, "mesh.dp_replicate": 1, "mesh.pp": 4, "mesh.tp": 8, "batch.global": ...,
                    "batch.accumulation": 8})  # fmt: skip
    for row in ("0 0 to 19 20 embedding", "1 20 to 40 21", "2 41 to 60 20", "3 61 to 79 19 norm, head"):
        assert f" {row} " in page
    assert f"{300 / 11:.1f}%" in page


def test_written_cuts_are_told_with_stages_that_have_no_layer() -> None:
    page = page_of(LAYOUTS["cuts"])
    assert "cut before layers 0, 1, 31 (pp.cuts)" in page
    for row in ("0 none 0 embedding", "1 0 1", "2 1 to 30 30", "3 31 1 norm, head"):
        assert f" {row} " in page


def test_the_published_counts_of_mixtral_are_told() -> None:
    page = page_of(MIXTRAL)
    assert "46,702,792,704 parameters" in page
    assert "12,879,925,248 active" in page
    assert "8 experts (swiglu of 14,336) in 32 layers, 2 a token" in page


@pytest.mark.parametrize("changes", [MIXTRAL, DEEPSEEK], ids=["Mixtral", "like DeepSeek"])
def test_the_experts_of_a_rank_are_those_that_it_cuts_out(changes: dict[str, Any]) -> None:
    """The ranges on the page against the parts of a stack that plan/sharding.py gives to each position of ep."""
    plan = emit(job(changes))
    stack = next(p for p in plan.job.model.parameters() if p.role == "experts")
    split = division(stack.shape, stack.cut, plan.mesh, sequence=True, kv="shard")
    told = re.findall(r"(\d+) to (\d+) at e(\d+)", page_of(changes))
    assert len(told) == plan.mesh.ep
    for first, last, position in told:
        parts = [split.slices(int(position), data)[0] for data in range(split.data)]
        assert {i for part in parts for i in range(part.start, part.stop)} == set(range(int(first), int(last) + 1))


def test_the_drawing_gives_each_rank_its_coordinates_and_its_place_among_experts() -> None:
    plan = emit(job(MIXTRAL))
    cells = re.findall(r"r(\d) s(\d) c(\d) t(\d) e(\d)", page_of(MIXTRAL))
    assert len(cells) == plan.mesh.world
    for rank, (*axes, expert) in enumerate(cells):
        at = dict(zip(("dp_replicate", "dp_shard", "cp", "tp"), map(int, axes), strict=True))
        assert plan.mesh.rank(**at) == rank
        assert int(expert) == rank % 8 % 4


def test_equal_float8_layers_are_one_line_and_add_up_to_the_plan() -> None:
    plan = emit(job(MIXTRAL))
    text = explain(plan)
    rows = re.findall(r"^ +(\d+)  (\S+) .*  (\S.*)$", text[text.index("── FLOAT8") : text.index("── BATCH")], re.M)
    (operation,) = (op for op in plan.program if isinstance(op, Fp8))
    assert sum(int(number) for number, _, fate in rows if fate == "float8") == len(operation.layers) == 64
    assert ("32", "layers.*.moe.router", "routers stay as they are") in rows
    assert [fate for _, name, fate in rows if name == "head"] == ["excluded by a pattern"]
    # Seven products of a block and a router, in 32 layers, and the head.
    assert sum(int(number) for number, _, _ in rows) == 32 * 8 + 1


@pytest.mark.parametrize("changes", [MIXTRAL, PIPED], ids=["Mixtral", "pipeline"])
def test_a_plan_that_was_stored_reads_as_it_did(changes: dict[str, Any]) -> None:
    plan = emit(job(changes))
    assert explain(read(dumps(plan))) == explain(plan)


def test_offloaded_states_are_not_held_against_the_memory_of_a_device() -> None:
    page = page_of(DEEPSEEK)
    assert "in host memory" in page
    assert "% of 131.3 GiB" not in page


def test_every_layer_that_set_a_value_is_told_strongest_first() -> None:
    """Case C015."""
    sources = Sources()
    sources.add("base.forge", "forge 1\nplan base { optimizer = adamw { lr = 3e-4 } }\n")
    layers = (
        Origin(Span(COMMAND_LINE, 0, 0), "command line", "5e-5"),
        Origin(Span("base.forge", 40, 44), "profile smoke", "1e-4"),
        Origin(Span("base.forge", 43, 47), "plan base", "3e-4"),
        Origin(NOWHERE, "schema default", "1e-3"),
    )
    made = job()
    changed = evolve(made, leaves={**made.leaves, "optimizer.lr": Leaf(Fraction(5, 100_000), layers)})
    text = explain_path(changed, "optimizer.lr", sources)
    lines = text.splitlines()
    assert lines[0] == "optimizer.lr = 5e-5"
    assert "peak learning rate" in lines[1]
    assert [line.split()[0] for line in lines if "5e-5" in line][-1] == "→"
    assert "base.forge:2:36" in text
    order = [text.index(layer) for layer in ("command line", "profile smoke", "plan base", "schema default")]
    assert order == sorted(order)


def test_a_derived_value_says_what_it_is_computed_from() -> None:
    text = explain_path(job(), "memory.states", Sources())
    assert text.startswith("memory.states = ")
    assert "cannot be assigned" in " ".join(text.split())


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("optimizer.rl", "did you mean `optimizer.lr`?"),
        ("x.y", "has no `x.y`"),
    ],
)
def test_a_path_that_is_no_value_is_answered_with_what_is_there(path: str, said: str) -> None:
    with pytest.raises(UsageError, match=re.escape(said)):
        explain_path(job(), path, Sources())


def test_a_record_is_shown_with_its_fields_once_each_and_a_component_with_them_behind_its_layers() -> None:
    lines = explain_path(job({"mesh.tp": 2}), "mesh", Sources()).splitlines()
    values = dict(line.split()[:2] for line in lines[1:])
    axes = ("pp", "dp_replicate", "dp_shard", "cp", "tp", "ep", "data_ranks", "world")
    assert (lines[0], len(lines) - 1, set(values)) == ("mesh", len(axes), {f"mesh.{name}" for name in axes})
    assert (values["mesh.tp"], values["mesh.dp_shard"]) == ("2", "2")
    text = explain_path(job(), "optimizer", Sources())
    assert text.startswith("optimizer = adamw")
    assert "optimizer.weight_decay" in text


def test_options_of_inserted_transforms_are_values_with_the_reason_why_they_are_there() -> None:
    made = job({"mesh.tp": 2})
    text = " ".join(explain_path(made, "apply.tp.sequence", Sources()).split())
    assert text.startswith("apply.tp.sequence = true")
    assert "`tp` is in the program as mesh.tp = 2; `apply = [tp { … }]` gives it options" in text
    assert "`fsdp` is in every program" in explain_path(made, "apply.fsdp.reshard", Sources())
    page = explain_all(made, Sources())
    assert [path in page for path in ("apply.tp.kv", "apply.fsdp.offload", "apply.cp.attention")] == [True, True, False]
    assert len(re.findall("── apply", page)) == 1


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("apply.cp.attention", "`cp` is not in the program, as mesh.cp = 1"),
        ("apply.fp8.recipe", "`fp8` is not in the program, as `apply` does not name it"),
        ("apply.tp.sequnece", "did you mean `apply.tp.sequence`?"),
    ],
)
def test_options_of_transforms_that_are_not_there_are_answered_with_the_reason(path: str, said: str) -> None:
    with pytest.raises(UsageError, match=re.escape(said)):
        explain_path(job({"mesh.tp": 2}), path, Sources())


def test_what_apply_names_is_not_told_as_inserted() -> None:
    made = job({"mesh.tp": 2, "apply": {"tp": 0}, "apply.tp.sequence": False})
    text = explain_path(made, "apply.tp.sequence", Sources())
    assert text.startswith("apply.tp.sequence = false")
    assert "is in the program as" not in text
