"""Is a point in training the first step boundary at or after it?"""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise

import pytest

from forgeplan.runtime.points import Passage, Progress
from forgeplan.spec.quantity import SECONDS, SHARE, STEPS, TOKENS, Quantity


def due_steps(every: Quantity, total: int | None = 10, wall: Fraction | None = None) -> list[int]:
    """Of ten steps of 30 tokens and 1.5 seconds each."""
    boundaries = [Progress(step, 30 * step, 1.5 * step) for step in range(11)]
    return [now.steps for before, now in pairwise(boundaries) if Passage(before, now, total, wall).reaches(every)]


@pytest.mark.parametrize(
    ("every", "due"),
    [
        (Quantity(3, STEPS), [3, 6, 9]),
        (Quantity(1, STEPS), list(range(1, 11))),
        (Quantity(100, TOKENS), [4, 7, 10]),
        (Quantity(60, TOKENS), [2, 4, 6, 8, 10]),
        (Quantity(10, TOKENS), list(range(1, 11))),
        (Quantity(Fraction(4), SECONDS), [3, 6, 8]),
        (Quantity(Fraction("0.25"), SHARE), [3, 5, 8, 10]),
        (Quantity(Fraction(1, 3), SHARE), [4, 7, 10]),
    ],
    ids=str,
)
def test_the_first_boundary_at_or_after_each_multiple(every: Quantity, due: list[int]) -> None:
    assert due_steps(every) == due


def test_a_share_of_a_run_that_time_alone_bounds_is_one_of_its_time() -> None:
    assert due_steps(Quantity(Fraction("0.5"), SHARE), total=None, wall=Fraction(6)) == [2, 4, 6, 8, 10]


def test_no_point_is_due_twice_after_a_resume() -> None:
    """A run that resumes at step 3 has passed the multiple at 3."""
    passage = Passage(Progress(3, 90, 4.5), Progress(4, 120, 6.0), 10)
    assert not passage.reaches(Quantity(3, STEPS))
