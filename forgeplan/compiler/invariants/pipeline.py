"""Do stages, schedule and microbatches of a pipeline fit one another?"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from itertools import pairwise

from forgeplan.compiler.facts import Fact, Facts
from forgeplan.compiler.invariants.registry import Finding, Legal, divisors, invariant, legal
from forgeplan.compiler.passes.batch import microbatches
from forgeplan.compiler.passes.stages import are_cuts, can_be_dealt
from forgeplan.compiler.wording import listing, plural
from forgeplan.plan.stages import cut_at, dealt, layers_by_weight
from forgeplan.spec.operation.pp import ONE_STAGE, SCHEDULES, TWO_STAGES
from forgeplan.spec.quantity import Quantity

IN_ROUNDS = ("interleaved", "zero_bubble")
MOST_SHOWN = 32
"""Stages whose layers are listed one by one."""


def fits_stages(schedule: str, stages_per_rank: int) -> bool:
    """Whether a schedule works with so many stages of one rank."""
    fixed = 1 if schedule in ONE_STAGE else 2 if schedule in TWO_STAGES else stages_per_rank
    return stages_per_rank == fixed


def fits_microbatches(schedule: str, pp: int, number: int) -> bool:
    """Whether torch's schedules take so many microbatches."""
    if schedule in IN_ROUNDS:
        return number % max(1, number // pp) == 0
    least = {"one_f_one_b": pp, "dualpipe_v": 2 * pp}.get(schedule, 1)
    return number >= least


@invariant("FP0429", "a rank has as many stages as the schedule works with")
def stages_fit_the_schedule(facts: Facts) -> Iterator[Finding]:
    if schedule_of(facts) is None:
        return
    schedule, per_rank = facts["apply.pp.schedule"], facts["apply.pp.stages_per_rank"]
    if fits_stages(schedule.value, per_rank.value):
        return
    wanted = 1 if schedule.value in ONE_STAGE else 2
    yield stages_fit_the_schedule.at(
        f"{schedule.value} works with {plural(wanted, 'stage')} on each rank, and stages_per_rank is "
        f"{per_rank.value:,}",
        per_rank,
        schedule,
        legal=(
            legal(facts, per_rank.path, [wanted]),
            legal(facts, schedule.path, SCHEDULES),
        ),
    )


@invariant("FP0430", "the layers fill all stages of the pipeline")
def no_stage_is_empty(facts: Facts) -> Iterator[Finding]:
    dealing = _dealing(facts)
    if dealing is None or facts["apply.pp.cuts"].value is not None:
        return
    layers, pp, per_rank, embedding, head = dealing
    num_stages = pp.value * per_rank.value
    if can_be_dealt(layers.value, num_stages, embedding.value, head.value):
        return
    total = layers.value + embedding.value + head.value
    sizes = layers_by_weight(layers.value, num_stages, embedding.value, head.value)
    heavy = [f"{fact.value:,}" for fact in (embedding, head) if fact.value > max(1, total // num_stages)]
    why = (
        f"which is less than the {listing(heavy)} that embedding or head count as"
        if heavy and total >= num_stages
        else "which leaves stages empty"
    )
    yield no_stage_is_empty.at(
        f"{plural(layers.value, 'layer')}, and an embedding and a head that count as {embedding.value:,} and "
        f"{head.value:,}, are {_shared(total, num_stages)} for each of {num_stages:,} stages, {why}",
        pp,
        layers,
        per_rank,
        embedding,
        head,
        legal=(
            legal(facts, pp.path, divisors(facts["cluster.devices"].value)),
            legal(facts, per_rank.path, range(1, min(per_rank.value, layers.value + 2))),
            *(legal(facts, w.path, range(min(w.value, 8))) for w in (embedding, head) if w.written),
        ),
        notes=(f"layers of each stage by this rule: {_shown(sizes)}",) if num_stages <= MOST_SHOWN else (),
    )


def _shared(total: int, num_stages: int) -> str:
    whole, rest = divmod(total, num_stages)
    return f"{total:,} ÷ {num_stages:,} = {whole:,}" + (f" remainder {rest:,}" if rest else "")


@invariant("FP0431", "written cuts give every layer to one stage")
def cuts_cover_the_layers(facts: Facts) -> Iterator[Finding]:
    dealing = _dealing(facts)
    if dealing is None or facts["apply.pp.cuts"].value is None:
        return
    cuts = facts["apply.pp.cuts"]
    layers, pp, per_rank, embedding, head = dealing
    num_stages = pp.value * per_rank.value
    if are_cuts(layers.value, num_stages, cuts.value):
        return
    automatic: list[tuple[int, ...]] = []
    if can_be_dealt(layers.value, num_stages, embedding.value, head.value):
        stages = dealt(layers.value, num_stages, embedding.value, head.value)
        automatic = [tuple(first for first, _ in stages[1:])]
    yield cuts_cover_the_layers.at(
        f"cuts = {cuts.text} {_fault(layers.value, num_stages, cuts.value)}",
        cuts,
        layers,
        pp,
        per_rank,
        legal=(legal(facts, cuts.path, [*automatic, None]),),
        notes=(f"stages between these cuts: {_ranges(layers.value, cuts.value)}",)
        if len(cuts.value) < MOST_SHOWN
        else (),
    )


def _fault(layers: int, num_stages: int, cuts: tuple[int, ...]) -> str:
    """What is wrong with the cuts, the first fault of them."""
    outside = [cut for cut in cuts if not 0 <= cut <= layers]
    if outside:
        return (
            f"cuts before layer {outside[0]:,}, which does not exist: {plural(layers, 'layer')} are numbered 0 to "
            f"{layers - 1:,}, and a cut at {layers:,} leaves the last stage the head alone"
        )
    for before, after in pairwise(cuts):
        if after < before:
            twice = f"layer {after:,}" if before == after + 1 else f"layers {after:,} to {before - 1:,}"
            return f"gives {twice} to two stages: a cut at {after:,} follows one at {before:,}"
        if after == before:
            return f"has {after:,} twice: the stage between these two has no layers"
    return (
        f"makes {plural(len(cuts) + 1, 'stage')}, and mesh.pp · stages_per_rank = {num_stages:,} stages need "
        f"{plural(num_stages - 1, 'cut')}"
    )


def _ranges(layers: int, cuts: tuple[int, ...]) -> str:
    return listing(
        f"{first:,} … {end - 1:,}" if end - first > 1 else f"{first:,}" if end > first else "none"
        for first, end in cut_at(layers, cuts)
    )


def _shown(sizes: tuple[int, ...]) -> str:
    return listing(f"{size:,}" for size in sizes)


@invariant("FP0432", "the schedule of the pipeline takes the number of microbatches")
def microbatches_fit_the_schedule(facts: Facts) -> Iterator[Finding]:
    schedule = schedule_of(facts)
    if schedule is None:
        return
    pp, number, total, micro, length, ranks = (
        facts[path]
        for path in (
            "mesh.pp",
            "batch.accumulation",
            "batch.global",
            "batch.micro",
            "batch.length",
            "mesh.data_ranks",
        )
    )
    whole = microbatches(total.value, micro.value, length.value, ranks.value)
    if whole != number.value or fits_microbatches(schedule.value, pp.value, number.value):
        return
    yield microbatches_fit_the_schedule.at(
        f"a step has {plural(number.value, 'microbatch')}: {_rule(schedule.value, pp.value, number.value)}",
        pp,
        schedule,
        *((number,) if number.written else (total,)),
        micro,
        length,
        ranks,
        legal=(*_batches_that_fit(facts, schedule.value), legal(facts, schedule.path, SCHEDULES)),
    )


def _rule(schedule: str, pp: int, number: int) -> str:
    if schedule in IN_ROUNDS:
        rounds = number // pp
        return (
            f"{schedule} on {pp:,} ranks takes them in {number:,} // {pp:,} = {plural(rounds, 'round')} of equal size, "
            f"and {number:,} % {rounds:,} = {number % rounds:,}"
        )
    factor = f"2 · {pp:,} = {2 * pp:,}" if schedule == "dualpipe_v" else f"{pp:,}"
    return f"{schedule} on {pp:,} ranks needs at least {factor}"


def _batches_that_fit(facts: Facts, schedule: str) -> Iterator[Legal]:
    """The nearest numbers of microbatches that fit, and the batches and sequences of a microbatch that give them."""
    pp, number, micro = (facts[path].value for path in ("mesh.pp", "batch.accumulation", "batch.micro"))
    total = facts["batch.global"]
    fitting = sorted(_nearest(schedule, pp, number))
    if facts["batch.accumulation"].written:
        yield legal(facts, "batch.accumulation", fitting)
    else:
        one = Fraction(total.value.amount) / number
        yield legal(facts, "batch.global", [Quantity(int(one * n), total.value.dimension) for n in fitting])
        sequences = micro * number
        sizes = [size for size in divisors(sequences) if fits_microbatches(schedule, pp, sequences // size)]
        yield legal(facts, "batch.micro", sizes)


def _nearest(schedule: str, pp: int, number: int) -> Iterator[int]:
    """The next number of microbatches that fits below, if there is one, and above."""
    below = next((n for n in range(number - 1, 0, -1) if fits_microbatches(schedule, pp, n)), None)
    if below is not None:
        yield below
    yield next(n for n in range(number + 1, number + 2 * pp + 1) if fits_microbatches(schedule, pp, n))


def schedule_of(facts: Facts) -> Fact | None:
    """The schedule, or None where there is no pipeline."""
    return facts["apply.pp.schedule"] if facts["mesh.pp"].value > 1 else None


def _dealing(facts: Facts) -> tuple[Fact, Fact, Fact, Fact, Fact] | None:
    """Layers, ranks, stages of a rank, weights of embedding and head; None without a pipeline, or if the number of
    stages is wrong itself."""
    schedule = schedule_of(facts)
    if schedule is None or not fits_stages(schedule.value, facts["apply.pp.stages_per_rank"].value):
        return None
    weights = "apply.pp.weights"
    return (
        facts["model.layers"],
        facts["mesh.pp"],
        facts["apply.pp.stages_per_rank"],
        facts[f"{weights}.embedding"],
        facts[f"{weights}.head"],
    )
