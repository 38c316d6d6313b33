"""Is the stretching of rotary positions consistent?"""

from __future__ import annotations

from collections.abc import Iterator

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
