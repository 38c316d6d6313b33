"""Is the number of bytes on every rank exact, whatever the layout?"""

from __future__ import annotations

import time
from collections.abc import Iterator
from math import prod
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from forgeplan.compiler import emit
from forgeplan.compiler.passes.layout import Layout, layout_of
from forgeplan.compiler.passes.mesh import mesh_of
from forgeplan.compiler.passes.shards import rank_classes, shards_of
from forgeplan.plan.execution_plan import RankClass
from forgeplan.plan.sharding import Division, Slices, division
from forgeplan.spec.job import Job
from forgeplan.spec.model.parameter import Parameter
from tests.compiler.jobs import job
from tests.compiler.test_parameters import TINY

BYTES = {"fp64": 8, "fp32": 4, "bf16": 2}
SMALL = {"model.layers": 4, "model.dim": 24, "model.heads": 4, "model.kv_heads": 2, "model.ffn": 20, "model.vocab": 37,
         "batch.global": ..., "batch.accumulation": 12, "batch.micro": 1, "batch.length": 48}  # fmt: skip
EXPERTS = {"model.moe.experts": 6, "model.moe.top_k": 2, "model.moe.ffn": 12, "model.moe.shared": 1,
           "model.moe.first_dense": 1}  # fmt: skip


def chunk(rows: int, ranks: int, position: int) -> int:
    """Rows of torch.chunk at a position, by its own rule: equal chunks of ⌈rows ÷ ranks⌉ until none are left."""
    size = -(-rows // ranks)
    return max(0, min(size, rows - position * size))


def ranks_of(found: RankClass) -> list[int]:
    return [first + i * stride for first, count, stride in found.ranks for i in range(count)]


def layout(made: Job) -> Layout:
    found = layout_of(made.blocks["model"], mesh_of(made.blocks["mesh"]), made.blocks["apply"])
    assert found is not None
    return found


def classes(made: Job) -> tuple[RankClass, ...]:
    return rank_classes(made.blocks["model"], layout(made), made.blocks["precision"], 2)


def each_rank(made: Job) -> dict[int, tuple[int, int, int]]:
    """What the classes say of every rank; each is in one of them."""
    seen: dict[int, tuple[int, int, int]] = {}
    for found in classes(made):
        ranks = ranks_of(found)
        assert found.num_ranks == len(ranks)
        for rank in ranks:
            assert rank not in seen
            seen[rank] = (found.parameter_bytes, found.gradient_bytes, found.optimizer_bytes)
    return seen


@settings(max_examples=40, deadline=None)
@given(
    replicas=st.integers(1, 5),
    shards=st.integers(1, 23),
    heads=st.integers(1, 5),
    vocab=st.integers(1, 40),
    tie=st.booleans(),
    params=st.sampled_from(["fp32", "bf16"]),
    moments=st.sampled_from(["fp32", "bf16"]),
)
def test_data_ranks_hold_what_is_counted_by_hand(
    replicas: int, shards: int, heads: int, vocab: int, tie: bool, params: str, moments: str
) -> None:
    made = job({"model.layers": 1, "model.dim": 6 * heads, "model.heads": heads, "model.kv_heads": 1, "model.ffn": 10,
                "model.vocab": vocab, "model.tie": tie, "cluster.devices_per_node": replicas * shards,
                "mesh.dp_replicate": replicas, "precision.params": params, "precision.moments": moments})  # fmt: skip
    tensors = list(made.blocks["model"].parameters())
    expected = {}
    for rank in range(replicas * shards):
        held = sum(chunk(p.shape[0], shards, rank % shards) * (p.numel // p.shape[0]) for p in tensors)
        expected[rank] = (held * BYTES[params], held * BYTES[params], 2 * held * BYTES[moments] + 4 * len(tensors))
    assert each_rank(made) == expected
    assert len({c.state_bytes for c in classes(made)}) == len(classes(made))


@st.composite
def all_axes(draw: st.DrawFn) -> Job:
    """A small job over any axes: a pipeline of a dense model, or experts."""
    has_experts = draw(st.booleans())
    degrees = {"dp_replicate": draw(st.integers(1, 3)), "dp_shard": draw(st.integers(1, 5)),
               "cp": draw(st.integers(1, 3)), "tp": draw(st.sampled_from([1, 2, 4]))}  # fmt: skip
    fold = degrees["dp_shard"] * degrees["cp"] * degrees["tp"]
    changes: dict[str, Any] = {"apply": {}, "model.norm": draw(st.sampled_from(["rms", "layer"])),
                               "model.qk_norm": draw(st.booleans()), "model.bias": draw(st.booleans())}  # fmt: skip
    sequence = True
    if has_experts:
        degrees["ep"] = draw(st.sampled_from([ep for ep in (1, 2, 3, 6) if fold % ep == 0]))
        sequence = degrees["ep"] > 1 or draw(st.booleans())
    else:
        degrees["pp"] = draw(st.integers(1, 3))
        laps = draw(st.sampled_from([1, 2])) if degrees["pp"] > 1 else 1
        schedule = "one_f_one_b" if laps == 1 else draw(st.sampled_from(["interleaved", "zbv"]))
        changes |= {"apply": {"pp": 0}, "apply.pp.schedule": schedule, "apply.pp.stages_per_rank": laps}
    changes["apply"] = changes["apply"] | {"tp": 0}
    changes |= {"apply.tp.sequence": sequence, "apply.tp.kv": "replicate", "precision.reduce": "fp32",
                "precision.params": draw(st.sampled_from(["fp32", "bf16"]))}  # fmt: skip
    world = degrees["dp_replicate"] * fold * degrees.get("pp", 1)
    mesh = {f"mesh.{axis}": degree for axis, degree in degrees.items()}
    return job(SMALL | (EXPERTS if has_experts else {}) | {"cluster.devices_per_node": world} | changes | mesh)


@settings(max_examples=150, deadline=None)
@given(all_axes())
def test_ranks_of_all_axes_hold_what_a_loop_over_them_counts(made: Job) -> None:
    """The parts of plan/sharding.py, by which the executor cuts, added up rank by rank and tensor by tensor."""
    precision, mesh = made.blocks["precision"], layout(made).mesh
    waits = mesh.pp > 1 and mesh.dp_replicate * mesh.dp_shard * mesh.cp > 1
    expected = {}
    for rank in range(mesh.world):
        parts = list(parts_of(made, rank))
        held = sum(prod(one.stop - one.start for one in part) for _, _, part in parts)
        undivided = sum(prod(split.weight_shape) for _, split, _ in parts)
        gradients = undivided * BYTES[precision.reduce] if waits else held * BYTES[precision.params]
        expected[rank] = (held * BYTES[precision.params], gradients, 2 * held * 4 + 4 * len(parts))
    assert each_rank(made) == expected


@settings(max_examples=40, deadline=None)
@given(all_axes())
def test_all_ranks_together_hold_every_element_as_often_as_copies_are_meant(made: Job) -> None:
    mesh = layout(made).mesh
    counts = {p.name: torch.zeros(p.shape, dtype=torch.int) for p in made.blocks["model"].parameters()}
    meant: dict[str, int] = {}
    for rank in range(mesh.world):
        for parameter, split, part in parts_of(made, rank):
            counts[parameter.name][part] += 1
            meant[parameter.name] = split.copies
    assert {name: set(count.flatten().tolist()) for name, count in counts.items()} == {
        name: {copies} for name, copies in meant.items()
    }


def parts_of(made: Job, rank: int) -> Iterator[tuple[Parameter, Division, Slices]]:
    """Every parameter of a rank's stages, with the part that it holds."""
    found, options = layout(made), made.blocks["apply.tp"]
    mesh, at = found.mesh, found.mesh.coordinates(rank)
    stages = found.held[at["pp"]]
    for p in made.blocks["model"].parameters():
        if stage_of(p.name, found.stages) in stages:
            split = division(p.shape, p.cut, mesh, sequence=options.sequence, kv=options.kv)
            dense = (at["dp_shard"] * mesh.cp + at["cp"], at["tp"])
            data, weight = divmod(rank % mesh.expert_fold, mesh.ep) if split.expert else dense
            yield p, split, split.slices(weight, data)


def stage_of(name: str, stages: tuple[tuple[int, int], ...]) -> int:
    module, *rest = name.split(".")
    if module == "layers":
        return [int(rest[0]) in range(*stage) for stage in stages].index(True)
    return 0 if module == "embedding" else len(stages) - 1


def test_the_largest_class_is_the_derived_memory() -> None:
    made = job({"cluster.devices_per_node": 3, "batch.global": ..., "batch.accumulation": 1})
    plan = emit(made)
    assert (
        made.derived["memory.states"]
        == plan.rank_classes[0].state_bytes
        == max(c.state_bytes for c in plan.rank_classes)
    )


def test_replicas_hold_everything_each() -> None:
    """8,030,261,248 parameters: 4 bytes weight, 4 gradient, 8 moments, and 291 step counts of 4 bytes."""
    (only,) = emit(job({"mesh.dp_replicate": 4})).rank_classes
    assert only.ranks == ((0, 4, 1),)
    assert only.state_bytes == 8_030_261_248 * 16 + 291 * 4


def test_an_eighth_of_llama_3_8b_is_exact() -> None:
    """Case C116."""
    (only,) = emit(job({"cluster.devices_per_node": 8})).rank_classes
    assert only.parameter_bytes + only.gradient_bytes + only.optimizer_bytes - 291 * 4 == 16_060_522_496


def test_a_stage_holds_its_layers_alone_and_its_gradients_whole() -> None:
    """Llama 3 8B in 4 stages of 8, 9, 8 and 7 layers, each over 2 ranks."""
    embedding = head = 128_256 * 4096
    attention, mlp = (2 * 4096 + 2 * 1024) * 4096, 3 * 4096 * 14_336
    layer = attention + mlp + 2 * 4096
    stages = [8 * layer + embedding, 9 * layer, 8 * layer, 7 * layer + 4096 + head]
    tensors = [8 * 9 + 1, 9 * 9, 8 * 9, 7 * 9 + 2]
    made = job({"cluster.devices_per_node": 8, "mesh.pp": 4})
    assert each_rank(made) == {
        rank: (stages[rank // 2] * 2, stages[rank // 2] * 4, stages[rank // 2] * 4 + 4 * tensors[rank // 2])
        for rank in range(8)
    }


def test_experts_fold_into_data_and_tensor_ranks() -> None:
    """Mixtral 8x7B on tp 2 and 4 data ranks: of the experts 1/8 a rank, of all else 1/4 of a half, norms and routers
    1/4."""
    experts, attention = 32 * 8 * 3 * 4096 * 14_336, 32 * (2 * 4096 + 2 * 1024) * 4096
    table, whole = 2 * 32_000 * 4096, 32 * (8 * 4096 + 2 * 4096) + 4096
    made = job({"model.vocab": 32_000, "model.moe.experts": 8, "model.moe.top_k": 2, "mesh.tp": 2, "mesh.ep": 4,
                "cluster.devices_per_node": 8})  # fmt: skip
    assert sum(p.numel for p in made.blocks["model"].parameters()) == experts + attention + table + whole
    (only,) = classes(made)
    assert only.parameter_bytes == 4 * (experts // 8 + (attention + table) // 8 + whole // 4)


@pytest.mark.parametrize(
    ("mesh", "name", "numel"),
    [
        ({"cluster.devices_per_node": 8}, "norm + head", 128_256 * 4096 + 4096),
        ({"cluster.devices_per_node": 8, "mesh.tp": 4}, "norm + head", 128_256 * 1024 + 4096),
        ({"cluster.devices_per_node": 4, "mesh.tp": 4}, "embedding", 0),
        ({"cluster.devices_per_node": 8, "mesh.pp": 4}, "all units of the rank",
         8 * (41_943_040 + 176_160_768 + 8192) + 128_256 * 4096),
        ({"cluster.devices_per_node": 8, "apply": {"fsdp": 0}, "apply.fsdp.reshard": "never"}, "all units of the rank",
         8_030_261_248),
    ],
    ids=["fsdp", "tp", "tp alone", "pp", "never freed"],
)  # fmt: skip
def test_what_is_gathered_is_what_tp_leaves_of_a_unit(mesh: dict[str, Any], name: str, numel: int) -> None:
    made = job(mesh)
    found = shards_of(made.blocks["model"], layout(made), made.blocks["precision"], 2)
    assert (found.gathered_unit, found.gathered_bytes) == (name, 2 * numel)


def test_offloaded_states_leave_what_is_gathered_on_the_device() -> None:
    made = job({"cluster.devices_per_node": 8, "apply": {"fsdp": 0}, "apply.fsdp.offload": True})
    found = shards_of(made.blocks["model"], layout(made), made.blocks["precision"], 2)
    assert found.device_bytes == found.gathered_bytes == 2 * (128_256 * 4096 + 4096)
    assert found.classes == classes(job({"cluster.devices_per_node": 8}))


def test_a_model_that_a_mesh_does_not_divide_has_no_layout() -> None:
    for mesh in ({"mesh.tp": 3}, {"mesh.pp": 40}, {"mesh.ep": 3, "model.moe.experts": 8, "model.moe.top_k": 2}):
        made = job({"cluster.devices_per_node": 120, **mesh})
        assert layout_of(made.blocks["model"], mesh_of(made.blocks["mesh"]), ()) is None
        assert made.derived["memory.states"] is None


PIPED = {"mesh.pp": 4, "mesh.tp": 2}


@pytest.mark.parametrize("changes", [{}, TINY, PIPED], ids=["8B", "tiny", "pipeline"])
def test_131072_ranks_take_what_8_take(changes: dict[str, Any]) -> None:
    """Case C115."""

    def seconds(nodes: int) -> float:
        best = float("inf")
        for attempt in range(3):
            made = job(
                {**changes, "cluster.nodes": nodes, "batch.global": ..., "batch.accumulation": 4, "seed": attempt}
            )
            rank_classes.cache_clear()
            start = time.perf_counter()
            emit(made)
            best = min(best, time.perf_counter() - start)
        return best

    assert seconds(32_768) < 3 * seconds(2) + 0.05
