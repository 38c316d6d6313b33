"""Is the stretching of rotary positions consistent?"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

from forgeplan.compiler.facts import Fact, Facts
from forgeplan.compiler.invariants.registry import Finding, invariant, legal

ORDERED = {"llama3": ("low", "high"), "yarn": ("slow", "fast")}
"""For each scaling with two bounds, the smaller and the larger."""


@invariant("FP0504", "rope scaling stretches a context that it names, between bounds in their order")
def consistent_scaling(facts: Facts) -> Iterator[Finding]:
    at = "model.rope.scaling"
    scaling = facts[at]
    if scaling.value is None:
        return
    original = facts.get(f"{at}.original")
    if original is not None:
        yield from _original_within_context(facts, original)
    yield from _defined(facts, scaling)
    if scaling.value in ORDERED:
        low, high = (facts[f"{at}.{name}"] for name in ORDERED[scaling.value])
        if low.value >= high.value:
            yield consistent_scaling.at(
                f"{scaling.value} interpolates between {low.path.rpartition('.')[2]} = {low.text} and "
                f"{high.path.rpartition('.')[2]} = {high.text}, and the first is not below the second",
                low,
                high,
            )


def _original_within_context(facts: Facts, original: Fact) -> Iterator[Finding]:
    context = facts["model.context"]
    if original.value > context.value:
        yield consistent_scaling.at(
            f"the unscaled model had a context of {original.text}, more than the {context.text} it is stretched to",
            original,
            context,
            legal=(
                legal(facts, "model.context", [original.value]),
                legal(facts, original.path, [context.value]),
            ),
        )


def _defined(facts: Facts, scaling: Fact) -> Iterator[Finding]:
    """YaRN divides by the logarithm of theta, dynamic NTK by the number of pairs but one."""
    theta, head_dim = facts["model.rope.theta"], facts["model.head_dim"]
    if scaling.value == "yarn" and theta.value <= 1:
        yield consistent_scaling.at(
            f"yarn sorts frequencies by their wavelength, and with {theta.equation} no pair has a longer one than "
            "the first: theta must be above 1",
            theta,
            scaling,
            legal=(legal(facts, theta.path, [Fraction(10_000)]),),
        )
    if scaling.value == "ntk" and head_dim.value == 2:
        yield consistent_scaling.at(
            f"ntk spreads the stretching over the pairs of dimensions after the first, and {head_dim.equation} has "
            "no other: it must be at least 4",
            head_dim,
            scaling,
            legal=(legal(facts, head_dim.path, [4]),),
        )
