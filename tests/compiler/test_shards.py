"""Is the number of bytes on every rank exact, whatever the layout?"""

from __future__ import annotations

import time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from forgeplan.compiler import emit
from forgeplan.compiler.passes.shards import rank_classes
from forgeplan.plan.execution_plan import RankClass
from forgeplan.plan.mesh import Mesh
from forgeplan.spec.model.decoder import Decoder
from tests.compiler.jobs import job
from tests.compiler.test_parameters import TINY

BYTES = {"fp64": 8, "fp32": 4, "bf16": 2}


def chunk(rows: int, ranks: int, position: int) -> int:
    """Rows of torch.chunk at a position, by its own rule: equal chunks of ⌈rows ÷ ranks⌉ until none are left."""
    size = -(-rows // ranks)
    return max(0, min(size, rows - position * size))


def by_hand(model: Decoder, mesh: Mesh, params: str, moments: str, rank: int) -> tuple[int, int, int]:
    """Parameter, gradient and optimizer bytes of one rank, tensor by tensor."""
    position = rank % mesh.dp_shard
    held = 0
    tensors = list(model.parameters())
    for p in tensors:
        held += chunk(p.shape[0], mesh.dp_shard, position) * (p.numel // p.shape[0])
    return held * BYTES[params], held * BYTES[params], 2 * held * BYTES[moments] + 4 * len(tensors)


def ranks_of(found: RankClass) -> list[int]:
    return [first + i * stride for first, count, stride in found.ranks for i in range(count)]


@settings(max_examples=60, deadline=None)
@given(
    replicas=st.integers(1, 5),
    shards=st.integers(1, 23),
    heads=st.integers(1, 5),
    vocab=st.integers(1, 40),
    tie=st.booleans(),
    params=st.sampled_from(["fp32", "bf16"]),
    moments=st.sampled_from(["fp32", "bf16"]),
)
def test_classes_cover_every_rank_once_with_the_bytes_counted_by_hand(
    replicas: int, shards: int, heads: int, vocab: int, tie: bool, params: str, moments: str
) -> None:
    model = job({"model.layers": 1, "model.dim": 6 * heads, "model.heads": heads, "model.kv_heads": 1,
                 "model.ffn": 10, "model.vocab": vocab, "model.tie": tie}).blocks["model"]  # fmt: skip
    mesh = Mesh(dp_replicate=replicas, dp_shard=shards)
    classes = rank_classes(model, mesh, params, moments, 2)
    seen: dict[int, tuple[int, int, int]] = {}
    for found in classes:
        ranks = ranks_of(found)
        assert found.num_ranks == len(ranks)
        for rank in ranks:
            assert rank not in seen
            seen[rank] = (found.parameter_bytes, found.gradient_bytes, found.optimizer_bytes)
    assert seen == {rank: by_hand(model, mesh, params, moments, rank) for rank in range(mesh.world)}
    assert len({c.state_bytes for c in classes}) == len(classes)


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


@pytest.mark.parametrize("changes", [{}, TINY], ids=["8B", "tiny"])
def test_131072_ranks_take_what_8_take(changes: dict[str, Any]) -> None:
    def seconds(nodes: int) -> float:
        best = float("inf")
        for attempt in range(3):
            made = job(
                {**changes, "cluster.nodes": nodes, "batch.global": ..., "batch.accumulation": 1, "seed": attempt}
            )
            rank_classes.cache_clear()
            start = time.perf_counter()
            emit(made)
            best = min(best, time.perf_counter() - start)
        return best

    assert seconds(32_768) < 3 * seconds(2) + 0.05
