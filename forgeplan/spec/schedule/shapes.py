"""What is the learning rate at an update, as a factor of its peak? Pure functions of the update's number.

Updates are counted from 1. Warm-up of W updates gives update k the factor k/W. `progress` runs from 0 at the end of
warm-up to 1 at the last update.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from math import cos, floor, pi, sqrt
from typing import Any

from attrs import frozen

from forgeplan.spec import types as t
from forgeplan.spec.quantity import SHARE, TOKENS, Quantity
from forgeplan.spec.registry import component
from forgeplan.spec.setting import Change, setting

_WARMUP: dict[str, Any] = {
    "doc": "linear rise to the peak",
    "default": "0 steps",
    "within": "[0, )",
    "change": Change.RESUMABLE,
}
_FLOOR: dict[str, Any] = {"doc": "factor at the end", "default": "0%", "within": "[0, 1]", "change": Change.RESUMABLE}


def cosine(p: float) -> float:
    return 0.5 * (1 + cos(pi * p))


def linear(p: float) -> float:
    return 1 - p


def one_minus_sqrt(p: float) -> float:
    return 1 - sqrt(p)


def rex(p: float) -> float:
    """Chen et al., 2022."""
    return (1 - p) / (0.5 + 0.5 * (1 - p))


DECAYS: dict[str, Callable[[float], float]] = {"cosine": cosine, "linear": linear, "sqrt": one_minus_sqrt, "rex": rex}


def rate_factor(schedule: Any, update: int, total: int | None, tokens_per_step: int) -> float:
    """Learning rate of an update (counted from 1) ÷ peak. `schedule` is one of the classes below; None is constant.

    `total` is the number of updates of the run, or None where only time bounds it.
    """
    return 1.0 if schedule is None else schedule.factor(update, total, tokens_per_step)


def span_in_updates(span: Quantity, total: int | None, tokens_per_step: int) -> int:
    """Whole updates in a part of a schedule; raises ValueError for a share where `total` is not known.

    Rounded down, so that parts which fill the run exactly still fit into it.
    """
    if span.dimension == TOKENS:
        return floor(Fraction(span.amount) / tokens_per_step)
    if span.dimension == SHARE:
        if total is None:
            raise ValueError("a share of a schedule whose length is not known")
        return floor(Fraction(span.amount) * total)
    return int(span.amount)


def _decayed(shape: Callable[[float], float], update: int, start: int, end: int, floor: Fraction) -> float:
    """The factor at `update` of a decay that is 1 at `start` and `floor` at `end`."""
    if update <= start:
        return 1.0
    progress = min((update - start) / (end - start), 1.0) if end > start else 1.0
    return float(floor) + (1 - float(floor)) * shape(progress)


@frozen
class Decaying:
    """Warm-up, then a decay over all the rest, down to `floor`."""

    warmup: Quantity = setting(t.SPAN_OF_SCHEDULE, **_WARMUP)
    floor: Fraction = setting(t.PORTION, **_FLOOR)

    def factor(self, update: int, total: int | None, tokens_per_step: int) -> float:
        """Learning rate of an update (counted from 1) ÷ peak. Raises ValueError where `total` is not known."""
        if total is None:
            raise ValueError("a decay over a run whose length is not known")
        warmup = span_in_updates(self.warmup, total, tokens_per_step)
        if update < warmup:
            return update / warmup
        return _decayed(DECAYS[self.tag], update, warmup, total, self.floor)  # type: ignore[attr-defined]


@component("schedule", "cosine")
@frozen
class Cosine(Decaying):
    """Half a cosine wave (Loshchilov and Hutter, 2017)."""


@component("schedule", "linear")
@frozen
class Linear(Decaying):
    """A straight line."""


@component("schedule", "rex")
@frozen
class Rex(Decaying):
    """Reflected exponential (Chen et al., 2022)."""


@component("schedule", "wsd")
@frozen
class Wsd:
    """Warm-up, stable, decay (Hu et al., 2024)."""

    decay: Quantity = setting(
        t.SPAN_OF_SCHEDULE, "length of the decay at the end", within="[0, )", change=Change.RESUMABLE, example="20%"
    )
    warmup: Quantity = setting(t.SPAN_OF_SCHEDULE, **_WARMUP)
    shape: str = setting(
        t.OneOf(("cosine", "linear", "sqrt")), "shape of the decay", default="sqrt", change=Change.RESUMABLE
    )
    floor: Fraction = setting(t.PORTION, **_FLOOR)

    def factor(self, update: int, total: int | None, tokens_per_step: int) -> float:
        """Learning rate of an update (counted from 1) ÷ peak. Raises ValueError where `total` is not known."""
        if total is None:
            raise ValueError("a decay at the end of a run whose length is not known")
        warmup = span_in_updates(self.warmup, total, tokens_per_step)
        if update < warmup:
            return update / warmup
        start = max(warmup, total - span_in_updates(self.decay, total, tokens_per_step))
        return _decayed(DECAYS[self.shape], update, start, total, self.floor)


@component("schedule", "constant")
@frozen
class Constant:
    """Warm-up, then the peak for ever."""

    warmup: Quantity = setting(t.SPAN_OF_SCHEDULE, **_WARMUP)

    def factor(self, update: int, total: int | None, tokens_per_step: int) -> float:
        """Learning rate of an update (counted from 1) ÷ peak."""
        return min(update / max(span_in_updates(self.warmup, total, tokens_per_step), 1), 1.0)
