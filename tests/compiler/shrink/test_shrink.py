"""Has the small plan every feature, transform, axis and option of the large one, or is what it lacks named?"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import attrs
import pytest
from hypothesis import HealthCheck, given, settings

from forgeplan.analysis import analyse
from forgeplan.compiler.shrink import shrink
from forgeplan.plan.execution_plan import ExecutionPlan
from forgeplan.plan.job_codec import encode
from forgeplan.plan.mesh import AXES
from forgeplan.plan.proof import Proof
from tests.compiler.shrink.plans import LARGE, large
from tests.plans.drawn import Drawn, plans

MOST_PARAMETERS = 200_000
SIZES = {
    *(f"model.{name}" for name in ("layers", "dim", "heads", "kv_heads", "head_dim", "ffn", "vocab", "pad_vocab")),
    *(f"model.{name}" for name in ("context", "window", "mtp", "rope.scaling.original")),
    *(f"model.moe.{name}" for name in ("experts", "top_k", "ffn", "groups", "group_limit", "shared")),
    *(f"model.moe.{name}" for name in ("every", "first_dense")),
    *(f"batch.{name}" for name in ("global.amount", "global.unit", "accumulation", "micro", "length")),
    *(f"schedule.{part}.{name}" for part in ("warmup", "decay") for name in ("amount", "unit")),
    *(f"mesh.{axis}" for axis in (*AXES, "ep")),
    *("cluster.nodes", "cluster.devices_per_node", "budget.steps", "budget.tokens", "budget.wall"),
}
"""What may be smaller in a trial."""
OTHERS = {
    *(f"precision.{name}" for name in ("params", "compute", "reduce", "moments")),
    *("cluster.arch", "cluster.hbm", "cluster.bf16", "tokenizer"),
}
"""What may be another."""
DATA = ("sources.", "tokenizer.", "eval.")
OPTIONS: dict[str, set[str]] = {
    "pp": {"stages"},
    "fp8": {"layers", "emulate"},
    "recompute": {"blocks"},
    "compile": {"backend"},
    "fsdp": {"params", "compute", "reduce", "reshard"},
}
"""Of each operation, what depends on sizes, formats or the device."""


def values(value: Any, at: str = "") -> Iterator[tuple[str, Any]]:
    """The plain values of an encoded job by path."""
    if not isinstance(value, dict):
        yield at, value
        return
    for name, inner in value.items():
        yield from values(inner, f"{at}.{name}".lstrip("."))


def of_job(plan: ExecutionPlan) -> dict[str, Any]:
    job = encode(plan.job)
    job.pop("apply")  # the program says it in full
    return dict(values(job))


def operations(plan: ExecutionPlan) -> dict[str, dict[str, Any]]:
    return {operation.name: attrs.asdict(operation) for operation in plan.program}


def check_kept(proof: Proof) -> None:
    whole, program = of_job(proof.plan), operations(proof.plan)
    said = [*proof.replaced, *(change for trial in proof.trials for change in trial.shrunk)]
    told = {change.path for change in said}
    for trial in proof.trials:
        small = of_job(trial.plan)
        changed = {path for path in {*whole, *small} if whole.get(path) != small.get(path)}
        changed = {path for path in changed if not path.startswith(DATA)}
        assert changed - SIZES - OTHERS - {"model.attention", "optimizer.lr", "optimizer.eps"} == set()
        assert {path.removesuffix(".amount").removesuffix(".unit") for path in changed} - told - {"tokenizer"} == set()
        assert trial.plan.estimates.num_parameters <= max(MOST_PARAMETERS, 0)
        check_program(proof, operations(trial.plan), program, trial.plan)
    check_axes(proof)


def check_program(
    proof: Proof, small: dict[str, dict[str, Any]], whole: dict[str, dict[str, Any]], plan: ExecutionPlan
) -> None:
    """Every operation with its options; of axes that a trial does not have none."""
    left_out = {"fp8"} if any(left.what.startswith("fp8 ") for left in proof.left_out) else set()
    absent = {axis for axis in (*AXES, "ep") if axis in whole and getattr(plan.mesh, axis) == 1}
    assert list(small) == [name for name in whole if name not in left_out | absent]
    for name, options in small.items():
        kept = set(options) - OPTIONS.get(name, set())
        assert {option: options[option] for option in kept} == {option: whole[name][option] for option in kept}


def check_axes(proof: Proof) -> None:
    """Every axis is above 1 in some trial, and so is every pair."""
    above = [{axis for axis in (*AXES, "ep") if getattr(trial.plan.mesh, axis) > 1} for trial in proof.trials]
    wanted = {axis for axis in (*AXES, "ep") if getattr(proof.plan.mesh, axis) > 1}
    assert set().union(*above) == wanted
    assert all(any({first, second} <= axes for axes in above) for first in wanted for second in wanted)
    assert all(trial.plan.mesh.world <= 8 for trial in proof.trials)


@pytest.mark.parametrize("name", LARGE)
def test_a_large_plan_keeps_all_that_it_has(name: str) -> None:
    check_kept(shrink(large(name)))


@settings(max_examples=150, deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck))
@given(plans())
def test_every_plan_that_compiles_is_shrunk_and_keeps_all_that_it_has(drawn: Drawn) -> None:
    analysis = analyse("drawn.forge", text=drawn.text)
    if not analysis.errors:
        check_kept(shrink(analysis.job("drawn")))


def sizes(plan: ExecutionPlan, *names: str) -> tuple[Any, ...]:
    return tuple(getattr(plan.job.model, name) for name in names)


def stages(plan: ExecutionPlan) -> list[int]:
    return [end - first for first, end in operations(plan)["pp"]["stages"]]


def test_heads_are_shared_and_divided_as_before() -> None:
    """64 heads share 8 over 8 tp ranks: several heads and one key and value head on each; of 16 ranks, two have one."""
    (first, *_) = shrink(large("five axes, interleaved")).trials
    heads, kv_heads, width, dim = sizes(first.plan, "heads", "kv_heads", "head_dim", "dim")
    assert (kv_heads, dim) == (first.plan.mesh.tp, heads * width)
    assert heads > kv_heads
    (copied,) = shrink(large("kv heads on several ranks")).trials
    assert copied.plan.mesh.tp > copied.plan.job.model.kv_heads > 1
    (single,) = shrink(large("one kv head, tied, window")).trials
    heads, kv_heads, width, dim = sizes(single.plan, "heads", "kv_heads", "head_dim", "dim")
    assert (kv_heads, heads > 1, heads * width > dim) == (1, True, True)
    assert 1 < single.plan.job.model.window < single.plan.job.batch.length
    assert single.plan.job.model.tie


def test_stages_and_cuts_keep_their_kind() -> None:
    """By hand: a first stage of one layer and a last of one, with longer ones between; uneven shares of 80 layers."""
    (cut,) = shrink(large("cuts")).trials
    whole = operations(shrink(large("cuts")).plan)["pp"]["stages"]
    assert [end - first for first, end in whole] == [1, 3, 6, 6, 4, 4, 7, 1]
    assert len(stages(cut.plan)) == 4
    assert min(stages(cut.plan)) > 0
    assert len(set(stages(cut.plan))) > 1
    weighed = [t.plan for t in shrink(large("five axes, a stage in the middle, a ring")).trials if t.plan.mesh.pp > 1]
    assert {plan.mesh.pp for plan in weighed} == {2, 3}
    assert all(len(set(stages(plan))) > 1 and plan.job.batch.accumulation >= 2 * plan.mesh.pp for plan in weighed)


def test_layers_with_experts_keep_their_pattern() -> None:
    """Every second layer from the fourth: dense ones first, one that would have experts among them, and later."""
    for trial in shrink(large("experts in every second layer, packed")).trials:
        model = trial.plan.job.model
        chosen = [model.is_moe(layer) for layer in range(model.layers)]
        assert model.moe.every == 2
        assert chosen.count(True) >= 2
        assert any((layer + 1) % 2 == 0 and not chosen[layer] for layer in range(model.moe.first_dense))
        assert model.moe.groups > model.moe.group_limit
        assert model.moe.experts > model.moe.top_k > 1
        assert trial.plan.job.batch.pack


def test_a_mixture_dealt_node_by_node_has_groups_on_two_nodes() -> None:
    first, *_ = shrink(large("experts node by node")).trials
    assert operations(first.plan)["ep"]["hierarchical"]
    assert 1 < first.plan.job.cluster.devices_per_node < first.plan.mesh.ep
    assert first.plan.mesh.ep < first.plan.mesh.expert_fold


def test_odd_sizes_stay_odd() -> None:
    (trial,) = shrink(large("odd sizes")).trials
    assert (trial.plan.mesh.dp_shard, trial.plan.job.model.mtp) == (2, 2)
    assert trial.plan.job.model.ffn % 2 == trial.plan.job.model.vocab % 2 == 1
    (padded,) = shrink(large("padded, offloaded, compiled")).trials
    assert padded.plan.job.model.pad_vocab > padded.plan.job.model.vocab


def test_a_number_of_shards_stays_some_of_them_and_blocks_keep_their_names_in_kind() -> None:
    trials = [trial.plan for trial in shrink(large("some of the shards, named blocks")).trials]
    some = [plan for plan in trials if 1 < operations(plan)["fsdp"]["reshard"] < plan.mesh.fsdp_degree]
    assert some
    for plan in trials:
        blocks = operations(plan)["recompute"]["blocks"]
        assert blocks[0] == "layers.0"
        assert blocks[-1] == f"layers.{plan.job.model.layers - 1}"
        assert len(blocks) < plan.job.model.layers


def test_values_that_follow_from_sizes_stay_what_they_were() -> None:
    """A rate in terms of the batch, and a distance that would be no step at all."""
    proof = shrink(large("cuts"))
    (trial,) = proof.trials
    assert trial.plan.job.optimizer.lr == proof.plan.job.optimizer.lr
    assert trial.plan.job.checkpoint.every == proof.plan.job.checkpoint.every


def test_float8_by_rows_is_emulated_in_the_same_layers_and_by_tensors_left_out() -> None:
    proof = shrink(large("float8 by rows"))
    (trial,) = proof.trials
    assert {name.split(".")[2] for name in operations(proof.plan)["fp8"]["layers"]} == {"mlp"}
    last = trial.plan.job.model.layers - 1
    inner = {f"layers.{i}.mlp.{name}" for i in range(1, last) for name in ("w_gate", "w_up", "w_down")}
    assert set(operations(trial.plan)["fp8"]["layers"]) == inner
    assert trial.plan.job.precision.params == "fp64"
    tensorwise = shrink(large("float8 by tensors"))
    assert [left.what for left in tensorwise.left_out if "fp8" in left.what] == ["fp8 with recipe = tensorwise"]
    assert ("apply.fp8", "fp8", "") in [(change.path, change.was, change.now) for change in tensorwise.replaced]
    assert tensorwise.trials[0].plan.job.precision.params == "fp64"


TINY_SHARDS = """forge 1
plan many {
  cluster   = { nodes = 32, devices_per_node = 8, arch = sm90 }
  model     = decoder { layers = 4, dim = 1_024, heads = 8, vocab = 1_024, context = 1Ki tokens, qk_norm = true }
  sources   = { web = synthetic {} }
  mesh      = { dp_shard = 256 }
  batch     = { accumulation = 1, micro = 1 sequences, length = 1Ki tokens }
  optimizer = adamw { lr = 3e-4 }
  budget    = { steps = 100 steps }
}
"""


def test_what_a_small_plan_cannot_have_is_named() -> None:
    """128 rows on 256 ranks leave half of them without one; an even width of a head on two ranks leaves none."""
    proof = shrink(analyse("many.forge", text=TINY_SHARDS).jobs[0])
    assert [left.what for left in proof.left_out if "_norm.weight" in left.what] == [
        f"layers.*.attention.{name}.weight on some of the ranks that share it only" for name in ("k_norm", "q_norm")
    ]


def test_pairs_that_take_more_ranks_than_there_are_are_named_with_the_reason() -> None:
    proof = shrink(large("some of the shards, named blocks"), 2, "each takes 1 GB, and 2 GB are free")
    why = {left.what: left.why for left in proof.left_out}
    assert why["dp_shard with tp"] == "it takes more than 2 ranks: each takes 1 GB, and 2 GB are free"
    assert all(trial.plan.mesh.world == 2 for trial in proof.trials)
