"""Which layers has each pipeline stage, which stages has each rank, and how long does a rank wait?

Integers only: the compiler reports by this, and the executor builds by it.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise

from forgeplan.spec.operation.pp import SPLIT_BACKWARD, TWO_STAGES

Stage = tuple[int, int]
"""Layers [first, end) of a stage; none if both are equal."""


def layers_by_weight(layers: int, num_stages: int, embedding: int, head: int) -> tuple[int, ...]:
    """Layers of each stage where embedding and head count as so many layers.

    All stages get equal parts of the sum, the earliest one more where a rest is left; what embedding and head count as
    is taken off the first and the last. Below 0 where they alone weigh more than a part.
    """
    part, rest = divmod(layers + embedding + head, num_stages)
    sizes = [part + (stage < rest) for stage in range(num_stages)]
    sizes[0] -= embedding
    sizes[-1] -= head
    return tuple(sizes)


def dealt(layers: int, num_stages: int, embedding: int, head: int) -> tuple[Stage, ...]:
    """The stages of the automatic split. Raises ValueError where a stage would have less than no layers."""
    sizes = layers_by_weight(layers, num_stages, embedding, head)
    if min(sizes) < 0:
        raise ValueError(f"{layers} layers cannot be dealt to {num_stages} stages: {sizes}")
    ends = [sum(sizes[: stage + 1]) for stage in range(num_stages)]
    return tuple(pairwise([0, *ends]))


def cut_at(layers: int, cuts: tuple[int, ...]) -> tuple[Stage, ...]:
    """The stages between written cuts, which are layers before which a new stage begins."""
    return tuple(pairwise([0, *cuts, layers]))


def stages_of_rank(schedule: str, stages_per_rank: int, pp: int, pp_rank: int) -> tuple[int, ...]:
    """Numbers of the stages that a rank of the pipeline holds, in the order of forward.

    Stages go round the ranks in a loop; for schedules in the shape of a V they go to the last rank and back.
    """
    if schedule in TWO_STAGES:
        return pp_rank, 2 * pp - 1 - pp_rank
    return tuple(pp_rank + lap * pp for lap in range(stages_per_rank))


def bubble(schedule: str, pp: int, stages_per_rank: int, microbatches: int) -> Fraction | None:
    """Share of a step in which a rank waits for others, if all stages take equal time and transfers take none.

    With v stages a rank, p ranks and m ≥ p microbatches it is (p − 1) ÷ (v·m + p − 1) (Narayanan et al., 2021, section
    2.2; v = 1 for gpipe and 1F1B); fewer microbatches wait at the end of every lap too. Where backward is split, with
    parts that each take as long as forward, waits are a third as long (Qi et al., 2023, schedule ZB-H1). None where a
    split schedule has fewer microbatches than fill the pipeline, as no closed form is known.
    """
    v, p, m = stages_per_rank, pp, microbatches
    if p == 1:
        return Fraction(0)
    if schedule in SPLIT_BACKWARD:
        filling = 2 * p if schedule in TWO_STAGES else p
        return Fraction(p - 1, 3 * v * m + p - 1) if m >= filling else None
    slots = v * m + p - 1 if m >= p else v * p + m - 1
    return 1 - Fraction(v * m, slots)
