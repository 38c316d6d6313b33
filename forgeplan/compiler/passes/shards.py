"""Exactly how many bytes of parameters, gradients and optimizer state does each rank hold?

FSDP2 cuts dim 0 of every parameter over the shard axis like torch.chunk, so ranks differ where rows do not divide. A
rank holds its rows of each parameter in `precision.params`; their gradient in the same dtype, which is what FSDP2
leaves in `.grad` after reducing in `precision.reduce`; the moments in `precision.moments`; and one fp32 step count a
parameter. The cost of this analysis does not depend on the number of ranks.
"""

from __future__ import annotations

from collections import Counter
from functools import lru_cache
from itertools import pairwise
from typing import Any

from attrs import frozen

from forgeplan.compiler.passes.manager import Results, analysis
from forgeplan.compiler.passes.parameters import parameters_of
from forgeplan.compiler.passes.units import units_of
from forgeplan.plan.execution_plan import RankClass
from forgeplan.plan.mesh import Mesh, shard_sizes

ITEM_BYTES = {"fp64": 8, "fp32": 4, "bf16": 2}
STEP_COUNT_BYTES = 4


@frozen
class Shards:
    """Classes of ranks by exact bytes, the largest first, and the largest unit as gathered for compute."""

    classes: tuple[RankClass, ...]
    gathered_unit: str
    gathered_bytes: int
    """Bytes of that unit in the compute dtype; 0 where nothing is gathered."""

    @property
    def largest(self) -> RankClass:
        return self.classes[0]


def shards_of(model: Any, mesh: Mesh, precision: Any, num_moments: int) -> Shards:
    """The shards of a model under a layout; `precision` has params, compute and moments."""
    largest = max(units_of(model), key=lambda unit: unit.numel)
    gathered = largest.numel * ITEM_BYTES[precision.compute] if mesh.fsdp_degree > 1 else 0
    classes = rank_classes(model, mesh, precision.params, precision.moments, num_moments)
    return Shards(classes, largest.name, gathered)


@lru_cache(maxsize=64)
def rank_classes(model: Any, mesh: Mesh, params: str, moments: str, num_moments: int) -> tuple[RankClass, ...]:
    """Ranks by the bytes they hold, the largest first."""
    all_parameters = parameters_of(model).all
    steps = len(all_parameters) * STEP_COUNT_BYTES if num_moments else 0
    positions: dict[int, list[tuple[int, int]]] = {}
    for first, last, numel in _intervals(all_parameters, mesh.fsdp_degree):
        positions.setdefault(numel, []).append((first, last))
    found = []
    for numel, intervals in positions.items():
        runs = tuple(run for first, last in _joined(intervals) for run in _ranks(first, last, mesh))
        found.append(
            RankClass(
                ranks=runs,
                num_ranks=sum(count for _, count, _ in runs),
                parameter_bytes=numel * ITEM_BYTES[params],
                gradient_bytes=numel * ITEM_BYTES[params],
                optimizer_bytes=numel * ITEM_BYTES[moments] * num_moments + steps,
            )
        )
    return tuple(sorted(found, key=lambda c: -c.state_bytes))


def _intervals(parameters: Any, degree: int) -> list[tuple[int, int, int]]:
    """(first, last + 1, elements a rank) of consecutive shard positions that hold equally much."""
    per_rows: Counter[int] = Counter()
    for parameter in parameters:
        per_rows[parameter.shape[0]] += parameter.numel // parameter.shape[0]
    change = {0: 0, degree: 0}
    for rows, width in per_rows.items():
        at, before = 0, 0
        for ranks, held in shard_sizes(rows, degree):
            change[at] = change.get(at, 0) + (held - before) * width
            at, before = at + ranks, held
    bounds, total, found = sorted(change), 0, []
    for first, last in pairwise(bounds):
        total += change[first]
        found.append((first, last, total))
    return found


def _joined(intervals: list[tuple[int, int]]) -> list[tuple[int, int]]:
    joined: list[tuple[int, int]] = []
    for first, last in intervals:
        if joined and joined[-1][1] == first:
            joined[-1] = (joined[-1][0], last)
        else:
            joined.append((first, last))
    return joined


def _ranks(first: int, last: int, mesh: Mesh) -> list[tuple[int, int, int]]:
    """Runs (first, count, stride) of the ranks at shard positions first … last − 1, in every replica."""
    degree, replicas = mesh.fsdp_degree, mesh.world // mesh.fsdp_degree
    if last - first == degree:
        return [(0, mesh.world, 1)]
    if last - first < replicas:
        return [(position, replicas, degree) for position in range(first, last)]
    return [(replica * degree + first, last - first, 1) for replica in range(replicas)]


@analysis("shards", "mesh")
def shards(results: Results) -> Shards:
    """Exact state bytes of every class of ranks."""
    facts = results.facts
    moments = facts.block("optimizer").num_moments
    return shards_of(facts.block("model"), results["mesh"], facts.block("precision"), moments)
