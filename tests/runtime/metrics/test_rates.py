"""Are speed, utilisation and remaining time those of this session?"""

from __future__ import annotations

from fractions import Fraction

import pytest

from forgeplan.runtime.metrics.display import count, duration
from forgeplan.runtime.metrics.rates import Clock, Peak
from forgeplan.runtime.reports import StepReport
from forgeplan.runtime.state import TrainState


def report(step: int, tokens: int, seconds: float, data_seconds: float = 0.0) -> StepReport:
    return StepReport(
        step=step, loss=1.0, z_loss=0.0, mtp_loss=0.0, grad_norm=1.0, lr=1e-3, tokens=tokens, counted=tokens,
        skipped=False, seconds=seconds, data_seconds=data_seconds,
    )  # fmt: skip


class Hands:
    """A clock that a test moves."""

    def __init__(self) -> None:
        self.at = 1000.0

    def __call__(self) -> float:
        return self.at


def test_tokens_of_earlier_sessions_do_not_count_as_speed() -> None:
    """Resumed at 1,000,000 tokens, 100,000 more in 10 s: 10,000 tokens/s; half of 20 steps left after 10 take 10 s."""
    hands = Hands()
    clock = Clock(120, TrainState(step=100, tokens=1_000_000), now=hands)
    for step in range(101, 111):
        clock.add(report(step, 1_000_000 + 10_000 * (step - 100), 1.0, data_seconds=0.25))
    hands.at += 10
    rates = clock.interval()
    assert rates.tokens_per_second == pytest.approx(10_000)
    assert rates.remaining_seconds == pytest.approx(10)
    assert rates.seconds_per_step == pytest.approx(1)
    assert rates.data_wait == pytest.approx(0.25)
    assert clock.session_tokens_per_second == pytest.approx(10_000)


def test_an_interval_begins_where_the_last_one_ended() -> None:
    clock = Clock(None, TrainState())
    clock.add(report(1, 100, 1.0))
    assert clock.interval().tokens_per_second == pytest.approx(100)
    clock.add(report(2, 400, 1.0))
    rates = clock.interval()
    assert rates.tokens_per_second == pytest.approx(300)
    assert rates.remaining_seconds is None


def test_utilisation_is_flops_done_over_flops_possible() -> None:
    """1,000 tokens/s at 6·10⁹ FLOP a token on 10¹³ FLOP/s: 60 %; recompute does a third more."""
    peak = Peak(Fraction(10**13), 6 * 10**9, 5 * 10**9, 4 / 3)
    clock = Clock(None, TrainState(), peak)
    clock.add(report(1, 1000, 1.0))
    rates = clock.interval()
    assert rates.mfu == pytest.approx(0.6)
    assert rates.mfu_causal == pytest.approx(0.5)
    assert rates.hfu == pytest.approx(0.8)
    assert Clock(None, TrainState()).interval().mfu is None


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0:00"), (42.4, "0:42"), (723, "12:03"), (11045, "3:04:05"), (172_800 + 11_040, "2d 03:04")],
)
def test_durations_are_read_at_a_glance(seconds: float, text: str) -> None:
    assert duration(seconds) == text


@pytest.mark.parametrize(("number", "text"), [(7, "7"), (999, "999"), (12_345, "12.3k"), (4.56e6, "4.56M")])
def test_counts_have_three_digits(number: float, text: str) -> None:
    assert count(number) == text
