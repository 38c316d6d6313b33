"""What is the learning rate at an update, as a factor of its peak? Pure functions of the update's number.

Updates are counted from 1. Warm-up of W updates gives update k the factor k/W. `progress` runs from 0 at the end of
warm-up to 1 at the last update.
"""

from __future__ import annotations

from fractions import Fraction
from math import cos, pi, sqrt

from attrs import frozen

from forgeplan.spec import types as t
from forgeplan.spec.quantity import Quantity
from forgeplan.spec.registry import component
from forgeplan.spec.setting import Change, setting

_WARMUP = {"doc": "linear rise to the peak", "default": "0 steps", "within": "[0, )", "change": Change.RESUMABLE}
_FLOOR = {"doc": "factor at the end", "default": "0%", "within": "[0, 1]", "change": Change.RESUMABLE}


def cosine(p: float) -> float:
    return 0.5 * (1 + cos(pi * p))


def linear(p: float) -> float:
    return 1 - p


def one_minus_sqrt(p: float) -> float:
    return 1 - sqrt(p)


def rex(p: float) -> float:
    """Chen et al., 2022."""
    return (1 - p) / (0.5 + 0.5 * (1 - p))


@frozen
class Decaying:
    """Warm-up, then a decay over all the rest, down to `floor`."""

    warmup: Quantity = setting(t.SPAN_OF_SCHEDULE, **_WARMUP)
    floor: Fraction = setting(t.PORTION, **_FLOOR)


@component("schedule", "cosine")
@frozen
class Cosine(Decaying):
    """Half a cosine wave (Loshchilov and Hutter, 2017)."""

    decay_shape = staticmethod(cosine)


@component("schedule", "linear")
@frozen
class Linear(Decaying):
    """A straight line."""

    decay_shape = staticmethod(linear)


@component("schedule", "rex")
@frozen
class Rex(Decaying):
    """Reflected exponential (Chen et al., 2022)."""

    decay_shape = staticmethod(rex)


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


@component("schedule", "constant")
@frozen
class Constant:
    """Warm-up, then the peak for ever."""

    warmup: Quantity = setting(t.SPAN_OF_SCHEDULE, **_WARMUP)
