"""On which small meshes is a layout proven? On few that have every axis, every pair of axes and every relation between
their degrees among them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import combinations, product
from math import gcd, prod

from attrs import frozen

from forgeplan.compiler.facts import Facts
from forgeplan.plan.mesh import AXES, Mesh

MOST_RANKS = 8
DEGREES = (1, 2, 3, 4, 8)
"""Of a small mesh. Two ranks have all that an axis does; some relations need three or four."""


@frozen
class Arrangement:
    """A mesh on machines with so many ranks each."""

    mesh: Mesh
    per_node: int


@frozen
class Options:
    """What a plan says beside its mesh that decides what happens between ranks."""

    stages_per_rank: int
    passes_keys_on: bool
    """Whether keys and values go round the ranks of a sequence."""
    keeps_some_sharded: bool
    """Whether gathered parameters stay sharded over some, not all, of their ranks."""
    copies_kv_heads: bool
    """Whether several key and value heads are each on several tp ranks."""
    lone_experts: bool
    """Whether a rank has one expert, and a token is sent to several, not all."""
    by_node: bool
    """Whether tokens travel to experts inside a node first."""

    @classmethod
    def of(cls, facts: Facts) -> Options:
        mesh, pp = facts.results("mesh"), facts.transform("pp")
        model, moe = facts.block("model"), facts.block("model").moe
        reshard, kv_heads = facts.transform("fsdp").reshard, model.kv_heads
        return cls(
            stages_per_rank=pp.stages_per_rank,
            passes_keys_on=facts.transform("cp").attention == "ring",
            keeps_some_sharded=isinstance(reshard, int) and 1 < reshard < mesh.fsdp_degree,
            copies_kv_heads=1 < kv_heads < mesh.tp,
            lone_experts=moe is not None and moe.experts == mesh.ep and 1 < moe.top_k < mesh.ep,
            by_node=mesh.ep > 1 and facts.transform("ep").hierarchical,
        )


Holds = Callable[[Mesh, int, Options], bool]

RELATIONS: dict[str, Holds] = {
    "a stage between the first and the last": lambda m, node, o: m.pp > 1 and m.pp * o.stages_per_rank > 2,
    "keys that pass a rank in between": lambda m, node, o: o.passes_keys_on and m.cp > 2,
    "parameters kept sharded over some of their ranks": lambda m, node, o: o.keeps_some_sharded and some_of(m) > 1,
    "several key and value heads on several ranks each": lambda m, node, o: o.copies_kv_heads and m.tp > 3,
    "experts on every rank that they fold into": lambda m, node, o: 1 < m.ep == m.expert_fold,
    "experts sharded further": lambda m, node, o: 1 < m.ep < m.expert_fold,
    "groups of experts inside those of tp": lambda m, node, o: 1 < m.ep < m.tp and m.tp % m.ep == 0,
    "groups of experts that are those of tp": lambda m, node, o: 1 < m.ep == m.tp,
    "groups of experts around those of tp": lambda m, node, o: 1 < m.tp < m.ep and m.ep % m.tp == 0,
    "groups of experts across those of tp": lambda m, node, o: bool(m.ep % m.tp and m.tp % m.ep),
    "groups of experts inside one sequence": lambda m, node, o: m.cp > 1 and 1 < m.ep <= m.cp * m.tp,
    "groups of experts over several sequences": lambda m, node, o: 1 < m.cp * m.tp < m.ep and m.cp > 1,
    "one expert on each rank and several for a token": lambda m, node, o: o.lone_experts and m.ep > 2,
    "experts reached node by node": lambda m, node, o: o.by_node and 1 < node < m.ep,
    "experts reached node by node, with one rank a node": lambda m, node, o: o.by_node and node == 1 < m.ep,
    "experts reached inside one node": lambda m, node, o: o.by_node and 1 < m.ep <= node,
}
"""What two axes, or an axis and an option, are to one another. A name that contains no axis is shown to a person."""


def some_of(mesh: Mesh) -> int:
    """The smallest number, above 1, of some of the ranks that shard a parameter or an expert; 1 if there is none."""
    both = gcd(mesh.fsdp_degree, mesh.expert_fold // mesh.ep)
    return next((n for n in range(2, mesh.fsdp_degree) if both % n == 0), 1)


def features_of(at: Arrangement, options: Options) -> frozenset[str]:
    """The axes above 1, every pair of them, and the relations that hold."""
    above = axes_above(at.mesh)
    pairs = {f"{first} with {second}" for first, second in combinations(above, 2)}
    relations = {name for name, holds in RELATIONS.items() if holds(at.mesh, at.per_node, options)}
    return frozenset(above) | pairs | relations


def axes_above(mesh: Mesh) -> list[str]:
    """The axes above 1, `ep` last."""
    return [axis for axis in (*AXES, "ep") if getattr(mesh, axis) > 1]


def covering(whole: Arrangement, options: Options, most_ranks: int) -> tuple[list[Arrangement], tuple[str, ...]]:
    """Few small arrangements that have all features of `whole` among them; and the features that none has.

    Each is the one with most of what is still missing; of several the one with fewest ranks. Relations that `whole`
    does not have are taken into the bargain where an axis or a pair cannot be had without them. One rank is its own.
    """
    wanted = features_of(whole, options)
    small = {at: features_of(at, options) for at in _small(whole, options, most_ranks)}
    chosen: list[Arrangement] = []
    missing = set(wanted)
    for allowed in ({at for at, found in small.items() if found <= wanted}, set(small)):
        while found := [at for at in small if at in allowed and small[at] & missing]:
            at = max(found, key=lambda at: (len(small[at] & missing), -len(small[at] - wanted), -at.mesh.world))
            chosen.append(at)
            missing -= small[at]
    return chosen or [Arrangement(Mesh(), 1)], tuple(sorted(missing))


def _small(whole: Arrangement, options: Options, most_ranks: int) -> Iterator[Arrangement]:
    """Arrangements with no axis that the whole does not have."""
    choices = [DEGREES if getattr(whole.mesh, axis) > 1 else (1,) for axis in AXES]
    for degrees in product(*choices):
        if not 1 < prod(degrees) <= most_ranks:
            continue
        dense = dict(zip(AXES, degrees, strict=True))
        for ep in DEGREES if whole.mesh.ep > 1 else (1,):
            mesh = Mesh(**dense, ep=ep)
            if mesh.expert_fold % ep == 0:
                yield from (Arrangement(mesh, per_node) for per_node in _nodes(mesh, whole, options))


def _nodes(mesh: Mesh, whole: Arrangement, options: Options) -> Iterator[int]:
    """Ranks of one machine: all of them, unless tokens travel node by node; then between nodes if they did before."""
    if not options.by_node or mesh.ep == 1:
        yield mesh.world
        return
    for per_node in range(mesh.world, 0, -1):
        fills = mesh.world % per_node == 0 and (mesh.ep % per_node == 0 or per_node % mesh.ep == 0)
        if fills and (per_node < mesh.ep) == (whole.per_node < whole.mesh.ep):
            yield per_node
