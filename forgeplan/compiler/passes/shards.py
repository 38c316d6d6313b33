"""Exactly how many bytes of parameters, gradients and optimizer state does each rank hold?

A rank holds its part of every parameter of its pipeline stages (plan/sharding.py): what tp or ep leaves, cut over the
data ranks like torch.chunk. That part is stored in `precision.params`; so is its gradient, as FSDP2 leaves it in
`.grad` after reducing in `precision.reduce`; the moments are in `precision.moments`, and each parameter has one fp32
step count.

A pipeline reduces no gradient before the end of the step: until then each rank accumulates, in `precision.reduce`, the
gradients of its stages as tp leaves them, undivided by FSDP. These are counted, being more than what is left of them.
For as long it keeps the parameters of its stages gathered.

The cost of this analysis grows with the positions along pp, not with the number of ranks.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from functools import lru_cache
from itertools import pairwise
from math import prod
from operator import itemgetter
from typing import Any, NamedTuple

from attrs import frozen

from forgeplan.compiler.passes.layout import Kind, Layout
from forgeplan.compiler.passes.manager import Results, analysis
from forgeplan.compiler.passes.units import module_of, units_of
from forgeplan.plan.execution_plan import RankClass
from forgeplan.plan.mesh import Mesh, shard_sizes
from forgeplan.spec.model.parameter import Parameter

ITEM_BYTES = {"fp64": 8, "fp32": 4, "bf16": 2}
FLOAT8_BYTES = 1
STEP_COUNT_BYTES = 4
ALL_UNITS = "all units of the rank"

Run = tuple[int, int, int]
"""Ranks (first, count, stride)."""


class Held(NamedTuple):
    """Bytes of a rank."""

    parameters: int
    gradients: int
    optimizer: int


class Span(NamedTuple):
    """Ranks at one position along pp, with places first … last − 1 among those that dp_shard, cp and tp number."""

    position: int
    first: int
    last: int


@frozen
class Shards:
    """Classes of ranks by exact bytes, the largest first; and what the rank needs that needs most on its device."""

    classes: tuple[RankClass, ...]
    neediest: RankClass
    gathered_unit: str
    gathered_bytes: int
    """Bytes of that unit in the dtype it computes in, as far as tp and ep leave it; 0 where nothing is gathered."""
    resident: Held
    """Bytes of a neediest rank's states on its device: all of them, unless they are offloaded to the host."""

    @property
    def device_bytes(self) -> int:
        """What one of the neediest ranks needs on its device: resident states and what is gathered."""
        return sum(self.resident) + self.gathered_bytes


@lru_cache(maxsize=64)
def shards_of(model: Any, layout: Layout, precision: Any, num_moments: int) -> Shards:
    """The shards of a model under a layout; `precision` has params, compute, reduce and moments."""
    classes = rank_classes(model, layout, precision, num_moments)
    by_held = {Held(c.parameter_bytes, c.gradient_bytes, c.optimizer_bytes): c for c in classes}
    gathered = [_gathered(units, layout) for units in _units_by_position(model, layout, precision)]
    found = []
    for held, spans in _spans(model, layout, precision, num_moments).items():
        name, size = max((gathered[span.position] for span in spans), key=itemgetter(1))
        found.append(Shards(classes, by_held[held], name, size, _resident(held, layout)))
    return max(found, key=lambda shards: (shards.device_bytes, shards.neediest.state_bytes))


@lru_cache(maxsize=64)
def rank_classes(model: Any, layout: Layout, precision: Any, num_moments: int) -> tuple[RankClass, ...]:
    """Ranks by the bytes they hold, the largest first."""
    found = []
    for held, spans in _spans(model, layout, precision, num_moments).items():
        runs = tuple(_joined(run for span in spans for run in _ranks(span, layout.mesh)))
        found.append(RankClass(runs, sum(count for _, count, _ in runs), *held))
    return tuple(sorted(found, key=lambda c: -c.state_bytes))


def _spans(model: Any, layout: Layout, precision: Any, num_moments: int) -> dict[Held, list[Span]]:
    """Where ranks stand that hold the same, in the order of ranks."""
    found: dict[Held, list[Span]] = {}
    for position, units in enumerate(_units_by_position(model, layout, precision)):
        kinds = sum((unit.kinds for unit in units), Counter())
        steps = kinds.total() * STEP_COUNT_BYTES if num_moments else 0
        waiting = sum(n * prod(layout.division(*kind).weight_shape) for kind, n in kinds.items())
        for first, last, numel in _intervals(kinds, layout):
            parameters = numel * ITEM_BYTES[precision.params]
            gradients = waiting * ITEM_BYTES[precision.reduce] if layout.reduces_late else parameters
            held = Held(parameters, gradients, numel * ITEM_BYTES[precision.moments] * num_moments + steps)
            found.setdefault(held, []).append(Span(position, first, last))
    return found


@frozen
class _Unit:
    """A unit by the number of its parameters of each kind, and of each kind and bytes of an element when gathered."""

    name: str
    module: str
    kinds: Counter[Kind]
    gathered: Counter[tuple[Kind, int]]


@lru_cache(maxsize=64)
def _units(model: Any, precision: Any, float8: frozenset[str]) -> tuple[_Unit, ...]:
    def gathered_bytes(parameter: Parameter) -> int:
        if parameter.name.removesuffix(".weight") in float8:
            return FLOAT8_BYTES
        # Routers compute in the dtype that they are stored in.
        return ITEM_BYTES[precision.params if parameter.role == "router" else precision.compute]

    found = []
    for unit in units_of(model):
        gathered = Counter(((p.shape, p.cut), gathered_bytes(p)) for p in unit.parameters)
        kinds: Counter[Kind] = Counter()
        for (kind, _), number in gathered.items():
            kinds[kind] += number
        found.append(_Unit(unit.name, module_of(unit.parameters[0].name), kinds, gathered))
    return tuple(found)


def _units_by_position(model: Any, layout: Layout, precision: Any) -> list[list[_Unit]]:
    """The units of the stages at each position along pp. No unit is in two stages."""
    found: list[list[_Unit]] = [[] for _ in layout.held]
    for unit in _units(model, precision, layout.float8):
        found[layout.position_of(unit.module)].append(unit)
    return found


def _intervals(kinds: Counter[Kind], layout: Layout) -> list[tuple[int, int, int]]:
    """(first, last + 1, elements a rank) of consecutive places among X = dp_shard·cp·tp ranks that hold equally much.

    A dense tensor's part changes after every tp places, that of a stack of experts after every ep.
    """
    fold = layout.mesh.expert_fold
    change = {0: 0, fold: 0}
    for (shape, cut), number in kinds.items():
        division = layout.division(shape, cut)
        rows = division.weight_shape[division.data_dim]
        width = number * prod(division.weight_shape) // rows
        places = fold // division.data
        at, before = 0, 0
        for parts, held in shard_sizes(rows, division.data):
            change[at] = change.get(at, 0) + (held - before) * width
            at, before = at + parts * places, held
    bounds, total = sorted(change), 0
    found: list[tuple[int, int, int]] = []
    for first, last in pairwise(bounds):
        total += change[first]
        if found and found[-1][2] == total:
            found[-1] = (found[-1][0], last, total)
        else:
            found.append((first, last, total))
    return found


def _ranks(span: Span, mesh: Mesh) -> list[Run]:
    """The ranks of a span, in every replica."""
    fold, replicas, width = mesh.expert_fold, mesh.dp_replicate, span.last - span.first
    start = span.position * replicas * fold
    if width == fold:
        return [(start, replicas * fold, 1)]
    if width < replicas:
        return [(start + place, replicas, fold) for place in range(span.first, span.last)]
    return [(start + replica * fold + span.first, width, 1) for replica in range(replicas)]


def _joined(runs: Iterable[Run]) -> list[Run]:
    """Runs of neighbouring ranks as one."""
    joined: list[Run] = []
    for first, count, stride in runs:
        before = joined[-1] if joined else None
        if before and stride == before[2] == 1 and sum(before[:2]) == first:
            joined[-1] = (before[0], before[1] + count, 1)
        else:
            joined.append((first, count, stride))
    return joined


def _gathered(units: list[_Unit], layout: Layout) -> tuple[str, int]:
    """What a rank gathers at once of its units, and its bytes: one unit, or all that stay gathered."""
    sizes = {unit.name: _gathered_bytes(unit, layout) for unit in units}
    return (ALL_UNITS, sum(sizes.values())) if layout.keeps_gathered else max(sizes.items(), key=itemgetter(1))


def _gathered_bytes(unit: _Unit, layout: Layout) -> int:
    """Bytes of what is not there whole already; of an offloaded unit, of all."""
    divided = ((layout.division(*kind), item, number) for (kind, item), number in unit.gathered.items())
    return sum(prod(d.weight_shape) * item * number for d, item, number in divided if d.data > 1 or layout.offloads)


def _resident(held: Held, layout: Layout) -> Held:
    """The states that stay on the device: of offloaded ones, gradients that wait for the end of the step."""
    if not layout.offloads:
        return held
    return Held(0, held.gradients if layout.reduces_late else 0, 0)


@analysis("shards", "layout")
def shards(results: Results) -> Shards:
    """Exact state bytes of every class of ranks."""
    facts = results.facts
    moments = facts.block("optimizer").num_moments
    return shards_of(facts.block("model"), results["layout"], facts.block("precision"), moments)
