"""How few layers have the pattern of the model's layers, and fill the stages of its pipeline in the same way?"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import combinations, pairwise, product
from typing import Any

from attrs import evolve, frozen

from forgeplan.compiler.facts import Facts
from forgeplan.compiler.passes.replayed import blocks_of
from forgeplan.compiler.passes.stages import stages_of
from forgeplan.compiler.patterns import meant
from forgeplan.compiler.shrink.alike import Features, Found, most_alike
from forgeplan.compiler.shrink.meshes import Arrangement
from forgeplan.plan.stages import Stage

MOST_LAYERS = 64
MOST_PERIOD = 3
"""Of what comes every so many layers, or before the first of another kind."""


@frozen
class Depth:
    """What depends on the number of layers. `first_dense` and `moe_every` say which have experts, `replay_every` of how
    many blocks one is computed again."""

    layers: int
    mtp: int
    first_dense: int = 0
    moe_every: int = 1
    replay_every: int = 1
    cuts: tuple[int, ...] | None = None


def fewest_layers(facts: Facts, at: Arrangement) -> Found:
    """As few layers, at least two, as keep what `_features` names."""
    whole = _depth_of(facts)
    pp, options = facts["mesh.pp"].value, facts.transform("pp")
    wanted = _features(facts, whole, stages_of(whole.layers, pp, options))
    if at.mesh.pp == 1:
        wanted = {name: value for name, value in wanted.items() if name not in STAGES}

    def features(small: Depth) -> Features:
        return _features(facts, small, stages_of(small.layers, at.mesh.pp, evolve(options, cuts=small.cuts)))

    chosen = most_alike(wanted, _candidates(facts, whole, at.mesh.pp), features)
    return chosen.found(_values(facts, whole, chosen.best))


def _depth_of(facts: Facts) -> Depth:
    model, moe = facts.block("model"), facts.block("model").moe
    pp = facts.transform("pp") if facts["mesh.pp"].value > 1 else None
    return Depth(
        layers=model.layers,
        mtp=model.mtp,
        first_dense=moe.first_dense if moe else 0,
        moe_every=moe.every if moe else 1,
        replay_every=facts["apply.recompute.every"].value if _replays_some(facts) else 1,
        cuts=pp.cuts if pp else None,
    )


STAGES = ("stages of equal size", "a first stage without layers", "a last stage without layers", "several on a stage")


def _features(facts: Facts, depth: Depth, stages: tuple[Stage, ...] | None) -> Features:
    found: dict[str, Any] = {"two layers": depth.layers > 1, "modules that predict further tokens": min(depth.mtp, 2)}
    if any(any(character.isdigit() for character in pattern) for pattern in _patterns(facts)):
        found["layers that patterns can tell apart"] = depth.layers > 2
    if stages is None:
        return found | dict.fromkeys(STAGES)
    sizes = [end - first for first, end in stages]
    found |= dict(zip(STAGES, (len(set(sizes)) == 1, not sizes[0], not sizes[-1], max(sizes) > 1), strict=True))
    return {**found, **_of_experts(facts, depth), **_of_replay(facts, depth)}


def _patterns(facts: Facts) -> Iterator[str]:
    """All patterns of names of modules."""
    for path in ("apply.recompute.only", "apply.fp8.include", "apply.fp8.exclude"):
        fact = facts.get(path)
        if fact is not None and fact.value not in (None, "all"):
            yield from fact.value


def _of_experts(facts: Facts, depth: Depth) -> Features:
    if facts.block("model").moe is None:
        return {}
    every, first = depth.moe_every, depth.first_dense
    chosen = [i >= first and (i + 1) % every == 0 for i in range(depth.layers + depth.mtp)]
    inner = chosen[: depth.layers]
    return {
        "layers with experts": min(sum(inner), 2),
        "a dense layer": not all(inner),
        "dense layers at the start": first > 0,
        "one layer of several with experts": every > 1,
        "a dense layer behind one with experts": (True, False) in set(pairwise(inner)),
        "a layer kept dense that would have experts": any((i + 1) % every == 0 for i in range(min(first, len(inner)))),
        "experts in the module of the first further token": chosen[depth.layers] if depth.mtp else None,
    }


def _of_replay(facts: Facts, depth: Depth) -> Features:
    if not _replays_some(facts):
        return {}
    replayed = (depth.layers + depth.mtp) // depth.replay_every
    return {"a block computed again": replayed > 0, "a block that is kept": replayed < depth.layers + depth.mtp}


def _replays_some(facts: Facts) -> bool:
    mode = facts.get("apply.recompute.mode")
    return mode is not None and mode.value == "every"


def _candidates(facts: Facts, whole: Depth, pp: int) -> Iterator[Depth]:
    """Fewest layers first."""
    per_rank = facts.transform("pp").stages_per_rank
    for layers in range(1, min(whole.layers, MOST_LAYERS) + 1):
        cuts: Iterable[Any] = (None,)
        if whole.cuts is not None and pp > 1:
            cuts = combinations(range(layers + 1), pp * per_rank - 1)
        for values in product(
            (min(whole.mtp, 2),),
            _up_to(whole.first_dense, least=0),
            _up_to(whole.moe_every, least=1),
            _up_to(whole.replay_every, least=1),
            cuts,
        ):
            yield Depth(layers, *values)


def _up_to(value: int, least: int) -> range:
    return range(least, min(value, MOST_PERIOD) + 1)


def _values(facts: Facts, whole: Depth, small: Depth) -> dict[str, Any]:
    found: dict[str, Any] = {"model.layers": small.layers, "model.mtp": small.mtp}
    if facts.block("model").moe is not None:
        found |= {"model.moe.first_dense": small.first_dense, "model.moe.every": small.moe_every}
    if _replays_some(facts):
        found["apply.recompute.every"] = small.replay_every
    if whole.cuts is not None and small.cuts is not None:
        found["apply.pp.cuts"] = small.cuts
    return found


def named_again(facts: Facts, small: Any, every: int) -> Found:
    """Patterns of `recompute.only` for the blocks of the small model: the first, the last, or some between them.

    `every` is how many blocks of the small model have one that is computed again.
    """
    only = facts.get("apply.recompute.only")
    if only is None or only.value is None:
        return Found({})
    model, names = facts.block("model"), blocks_of(small)

    def features(blocks: tuple[str, ...], every: int, patterns: tuple[str, ...]) -> Features:
        named = meant(patterns, blocks)
        return {
            "the first block named": blocks[0] in named,
            "the last block named": blocks[-1] in named,
            "all blocks named": len(named) == len(blocks),
            "a pattern that names no block": any(not meant([pattern], blocks) for pattern in patterns),
            "a named block that is computed again": len(named) >= every,
        }

    listed = (subset for size in range(1, len(names) + 1) for subset in combinations(names, size))
    chosen = most_alike(
        features(blocks_of(model), facts["apply.recompute.every"].value, only.value),
        (only.value, renumbered(only.value, model.layers, small.layers), *listed),
        lambda patterns: features(names, every, patterns),
    )
    return chosen.found({only.path: chosen.best})


def renumbered(patterns: tuple[str, ...], layers: int, fewer: int) -> tuple[str, ...]:
    """The patterns with the last layer's number for that of the last layer, and so from both ends to the middle."""

    def number(part: str) -> str:
        if not part.isdigit():
            return part
        layer = int(part)
        from_end = layers - 1 - layer
        return str(max(0, fewer - 1 - from_end) if from_end < layer else min(layer, fewer - 1))

    return tuple(dict.fromkeys(".".join(map(number, pattern.split("."))) for pattern in patterns))
