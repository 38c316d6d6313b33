"""Are layers dealt to stages, and stages to ranks, as the published rules say?"""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st
from torch.distributed.pipelining._utils import generate_stage_to_rank_mapping

from forgeplan.plan.stages import bubble, cut_at, dealt, layers_by_weight, stages_of_rank
from forgeplan.spec.operation.pp import SCHEDULES, TWO_STAGES
from tests.plan.pipeline_order import idle_share, order

SPLITS = [
    (2, 32, [16, 16]),
    (4, 32, [8, 9, 8, 7]),
    (8, 32, [4, 5, 4, 4, 4, 4, 4, 3]),
    (4, 80, [20, 21, 20, 19]),
    (8, 80, [10, 11, 10, 10, 10, 10, 10, 9]),
    (16, 126, [7, *[8] * 14, 7]),
    (4, 61, [15, 16, 16, 14]),
    (4, 6, [1, 2, 2, 1]),
    (2, 5, [3, 2]),
    (4, 2, [0, 1, 1, 0]),
]
"""(stages, layers, layers of each stage) as torchtitan's generator of module names deals them with weights 1 and 1; 126
layers on 16 stages is the split of the Llama 3 report."""


@pytest.mark.parametrize(("num_stages", "layers", "expected"), SPLITS)
def test_embedding_and_head_count_as_a_layer_each(num_stages: int, layers: int, expected: list[int]) -> None:
    stages = dealt(layers, num_stages, 1, 1)
    assert [end - first for first, end in stages] == expected


@given(st.integers(1, 130), st.integers(1, 20), st.integers(0, 5), st.integers(0, 5))
def test_every_layer_is_dealt_once_and_no_two_stages_differ_by_more_than_a_layer(
    layers: int, num_stages: int, embedding: int, head: int
) -> None:
    sizes = list(layers_by_weight(layers, num_stages, embedding, head))
    assert sum(sizes) == layers
    if min(sizes) < 0:
        with pytest.raises(ValueError, match="cannot be dealt"):
            dealt(layers, num_stages, embedding, head)
        return
    stages = dealt(layers, num_stages, embedding, head)
    assert [layer for first, end in stages for layer in range(first, end)] == list(range(layers))
    weights = sizes.copy()
    weights[0] += embedding
    weights[-1] += head
    assert max(weights) - min(weights) <= 1
    assert weights == sorted(weights, reverse=True)


def test_written_cuts_begin_a_stage_each() -> None:
    assert cut_at(32, (30,)) == ((0, 30), (30, 32))
    assert cut_at(6, (0, 2, 6)) == ((0, 0), (0, 2), (2, 6), (6, 6))


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("pp", [1, 2, 4, 7])
def test_stages_lie_on_ranks_as_torch_places_them(schedule: str, pp: int) -> None:
    for per_rank in (2,) if schedule in TWO_STAGES else (1, 2, 3):
        style = "v" if schedule in TWO_STAGES else "loop"
        torch_s = generate_stage_to_rank_mapping(pp, per_rank * pp, style=style)
        ours = {s: rank for rank in range(pp) for s in stages_of_rank(schedule, per_rank, pp, rank)}
        assert ours == torch_s


def test_the_bubble_of_eight_microbatches_on_four_ranks() -> None:
    """Case C021: interleaved, two stages a rank: 3/19 = 15.8 %."""
    assert bubble("interleaved", 4, 2, 8) == Fraction(3, 19)
    assert bubble("one_f_one_b", 4, 1, 8) == Fraction(3, 11)
    assert bubble("gpipe", 4, 1, 1) == Fraction(3, 4)
    assert bubble("interleaved", 1, 2, 8) == 0


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("pp", [2, 3, 4, 8])
def test_the_bubble_is_what_torch_s_order_of_work_leaves_idle(schedule: str, pp: int) -> None:
    one, two = schedule in ("gpipe", "one_f_one_b"), schedule in TWO_STAGES
    compared = 0
    for per_rank in (1,) if one else (2,) if two else (1, 2, 3):
        for microbatches in (1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 17, 24):
            expected = bubble(schedule, pp, per_rank, microbatches)
            if expected is None or (schedule == "one_f_one_b" and microbatches < pp):
                continue
            try:
                work = order(schedule, pp, per_rank, microbatches)
            except ValueError:  # a number of microbatches that torch refuses
                continue
            assert idle_share(work) == expected, (per_rank, microbatches)
            compared += 1
    assert compared >= 3
