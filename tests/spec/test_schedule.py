"""Is the learning rate the published function of the update's number?"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest

from forgeplan.spec.quantity import SHARE, STEPS, TOKENS, Quantity
from forgeplan.spec.schedule.shapes import Constant, Cosine, Linear, Rex, Wsd, rate_factor, span_in_updates

NO_WARMUP = Quantity(0, STEPS)


def factors(schedule: Any, total: int | None, tokens_per_step: int = 1) -> list[float]:
    return [rate_factor(schedule, update, total, tokens_per_step) for update in range(1, (total or 10) + 1)]


def whole_run(kind: str, floor: Fraction) -> Any:
    """A schedule that decays from the first update to the last."""
    if kind == "sqrt":
        return Wsd(decay=Quantity(Fraction(1), SHARE), warmup=NO_WARMUP, shape="sqrt", floor=floor)
    return {"cosine": Cosine, "linear": Linear, "rex": Rex}[kind](warmup=NO_WARMUP, floor=floor)


@pytest.mark.parametrize(
    ("kind", "quarters"),
    [
        ("cosine", [0.853553, 0.5, 0.146447, 0]),
        ("linear", [0.75, 0.5, 0.25, 0]),
        ("sqrt", [0.5, 0.292893, 0.133975, 0]),
        ("rex", [0.857143, 0.666667, 0.4, 0]),
    ],
)
def test_quarters_of_the_decay_have_the_published_factors(kind: str, quarters: list[float]) -> None:
    assert factors(whole_run(kind, Fraction(0)), 4) == pytest.approx(quarters, abs=1e-6)


@pytest.mark.parametrize(
    ("kind", "plain", "floored"),
    [
        ("cosine", [0.975528, 0.75, 0.024472], [0.977975, 0.775, 0.122025]),
        ("linear", [0.9, 0.666667, 0.1], [0.91, 0.7, 0.19]),
        ("sqrt", [0.683772, 0.422650, 0.051317], [0.715395, 0.480385, 0.146185]),
        ("rex", [0.947368, 0.8, 0.181818], [0.952632, 0.82, 0.263636]),
    ],
)
def test_the_floor_lifts_the_published_formula(kind: str, plain: list[float], floored: list[float]) -> None:
    """At p = 1/10, 1/3, 9/10 of 30 updates, with floor 0 and 10 %."""
    for floor, expected in ((Fraction(0), plain), (Fraction("0.1"), floored)):
        found = factors(whole_run(kind, floor), 30)
        assert [found[2], found[9], found[26]] == pytest.approx(expected, abs=1e-6)


def test_warm_up_reaches_the_peak_at_its_last_update() -> None:
    found = factors(Cosine(warmup=Quantity(4, STEPS), floor=Fraction(0)), 8)
    assert found == pytest.approx([0.25, 0.5, 0.75, 1, 0.853553, 0.5, 0.146447, 0], abs=1e-6)


@pytest.mark.parametrize("schedule", [Cosine, Linear, Rex])
def test_warm_up_as_long_as_the_run_is_legal(schedule: Any) -> None:
    assert factors(schedule(warmup=Quantity(10, STEPS), floor=Fraction(0)), 10)[-1] == 1
    assert factors(schedule(warmup=NO_WARMUP, floor=Fraction("0.1")), 1) == [pytest.approx(0.1)]


def test_wsd_parts_of_no_length_are_legal() -> None:
    no_decay = Wsd(decay=NO_WARMUP, warmup=NO_WARMUP, shape="sqrt", floor=Fraction(0))
    assert factors(no_decay, 3) == [1, 1, 1]
    no_stable = Wsd(decay=Quantity(2, STEPS), warmup=Quantity(2, STEPS), shape="linear", floor=Fraction(0))
    assert factors(no_stable, 4) == [0.5, 1, 0.5, 0]


def test_wsd_stays_at_the_peak_until_its_decay() -> None:
    wsd = Wsd(decay=Quantity(Fraction("0.2"), SHARE), warmup=Quantity(2, STEPS), shape="linear", floor=Fraction("0.5"))
    assert factors(wsd, 10) == pytest.approx([0.5, 1, 1, 1, 1, 1, 1, 1, 0.75, 0.5])


def test_constant_and_none_need_no_length() -> None:
    assert factors(Constant(warmup=Quantity(4, STEPS)), None)[:5] == [0.25, 0.5, 0.75, 1, 1]
    assert factors(None, None) == [1] * 10


def test_a_decay_needs_a_length() -> None:
    for schedule in (whole_run("cosine", Fraction(0)), whole_run("sqrt", Fraction(0))):
        with pytest.raises(ValueError, match="length is not known"):
            schedule.factor(1, None, 1)


def test_parts_are_whole_updates_rounded_down() -> None:
    assert span_in_updates(Quantity(100, TOKENS), None, 32) == 3
    assert span_in_updates(Quantity(Fraction("0.03"), SHARE), 150, 32) == 4
    assert span_in_updates(Quantity(7, STEPS), None, 32) == 7
