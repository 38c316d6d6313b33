"""Which layers does each stage of the pipeline have?"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from forgeplan.compiler.facts import Poisoned
from forgeplan.compiler.passes.manager import Results, analysis
from forgeplan.plan.stages import Stage, cut_at, dealt


def can_be_dealt(layers: int, num_stages: int, embedding: int, head: int) -> bool:
    """Whether layers dealt by weight leave no stage empty; one may hold embedding or head alone."""
    return (layers + embedding + head) // num_stages >= max(1, embedding, head)


def are_cuts(layers: int, num_stages: int, cuts: tuple[int, ...]) -> bool:
    """Whether written cuts make so many stages that together have every layer once."""
    in_range = all(0 <= cut <= layers for cut in cuts)
    return len(cuts) == num_stages - 1 and in_range and all(a < b for a, b in pairwise(cuts))


def stages_of(layers: int, pp: int, options: Any) -> tuple[Stage, ...] | None:
    """Layers [first, end) of every stage in the order of forward, or None where the options of `pp` make none.

    Without a pipeline there is one stage, of all layers, whatever the options.
    """
    if pp == 1:
        return ((0, layers),)
    num_stages, weights = pp * options.stages_per_rank, options.weights
    if options.cuts is not None:
        return cut_at(layers, options.cuts) if are_cuts(layers, num_stages, options.cuts) else None
    if can_be_dealt(layers, num_stages, weights.embedding, weights.head):
        return dealt(layers, num_stages, weights.embedding, weights.head)
    return None


@analysis("stages", "mesh")
def stages(results: Results) -> tuple[Stage, ...]:
    """Layers of every stage; a plan whose layers cannot be dealt has no such fact, and a check says why."""
    facts, pp = results.facts, results["mesh"].pp
    found = stages_of(facts.block("model").layers, pp, None if pp == 1 else facts.transform("pp"))
    if found is None:
        raise Poisoned("apply.pp")
    return found
