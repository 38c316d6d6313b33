"""Are the settings of training within what usually works?"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

from forgeplan.compiler.changes import Change
from forgeplan.compiler.facts import Facts
from forgeplan.compiler.invariants.registry import Finding, lint
from forgeplan.compiler.wording import bytes_text, plan_text
from forgeplan.diagnostics.diagnostic import Label
from forgeplan.spec.quantity import SHARE, Quantity

USUAL_RATES = {"adamw": (Fraction(1, 100_000), Fraction(3, 1000))}
"""Peak learning rates seen in published runs, by optimizer."""

MOST_WARMUP = Fraction(1, 5)
HOUR = 3600


@lint("unusual-rate", "learning rate and warm-up are such as published runs use")
def unusual_rate(facts: Facts) -> Iterator[Finding]:
    optimizer, rate = facts["optimizer"], facts["optimizer.lr"]
    low, high = USUAL_RATES.get(optimizer.value, (0, None))
    if high is None:
        return
    if not low <= rate.value <= high:
        yield unusual_rate.at(
            f"a peak rate of {rate.text} is unusual for {optimizer.value}: published runs use "
            f"{plan_text(low)} to {plan_text(high)}",
            rate,
        )
    horizon, warmup = facts.results("horizon"), facts.get("schedule.warmup")
    if warmup is None or not warmup.written or not horizon.steps or horizon.warmup is None:
        return
    share = Fraction(horizon.warmup, horizon.steps)
    if share == 0 or MOST_WARMUP < share <= 1:  # One that is longer than the run is an error.
        amount = "no warm-up" if horizon.warmup == 0 else f"a warm-up of {warmup.text}"
        yield unusual_rate.at(
            f"{amount} is unusual for {optimizer.value}: published runs use some, and at most "
            f"{plan_text(Quantity(MOST_WARMUP, SHARE))} of the run",
            warmup,
        )


@lint("low-precision-state", "weights and sums over ranks are kept in fp32")
def low_precision_state(facts: Facts) -> Iterator[Finding]:
    params, reduce, ranks = facts["precision.params"], facts["precision.reduce"], facts["mesh.data_ranks"]
    if params.value == "bf16":
        count = facts["model.params"].value
        yield low_precision_state.at(
            "weights stored in bf16 lose updates smaller than about 1/512 of a weight",
            params,
            help=(f"precision.params = fp32, for {bytes_text(2 * count)} more of weights over all shards",),
            changes=(Change(params.path, "fp32"),),
        )
    if reduce.value == "bf16" and ranks.value > 1:
        yield low_precision_state.at(
            f"gradients of {ranks.value:,} data ranks are summed in bf16, with 8 bits for each sum",
            reduce,
            ranks,
            help=("precision.reduce = fp32",),
            changes=(Change(reduce.path, "fp32"),),
        )


@lint("no-checkpoint", "a run of more than an hour saves its state")
def no_checkpoint(facts: Facts) -> Iterator[Finding]:
    wall = facts.get("budget.wall")
    if facts["checkpoint.every"].value is not None or wall is None or wall.value is None or wall.value <= HOUR:
        return
    place = wall.label("may run this long")
    yield no_checkpoint.at(
        f"a run of up to {wall.text} has no checkpoint.every, so that a failure loses all of it",
        Label(place.span, place.text) if place else None,
        help=("checkpoint = { every = 30min }",),
        changes=(Change("checkpoint.every", "30min"),),
    )
