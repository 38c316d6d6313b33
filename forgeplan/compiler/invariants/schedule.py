"""Do the parts of the schedule fit into the run?"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from math import floor

from forgeplan.compiler.facts import Fact, Facts
from forgeplan.compiler.invariants.registry import Finding, invariant, legal
from forgeplan.compiler.passes.horizon import exact_updates_of
from forgeplan.compiler.wording import plural, rounded
from forgeplan.diagnostics.diagnostic import Label
from forgeplan.spec.quantity import SHARE, STEPS, Quantity


@invariant("FP0702", "the parts of the schedule are no longer than the run")
def parts_fit_the_run(facts: Facts) -> Iterator[Finding]:
    end = facts.get("budget.steps")
    if end is None or end.value is None or facts.block("schedule") is None:
        return
    if end.written and (budget := facts.get("budget.tokens")) is not None and budget.value is not None:
        return  # The run has two ends, which is a fault of its own.
    tokens = facts["batch.tokens"].value
    parts = [fact for name in ("warmup", "decay") if (fact := facts.get(f"schedule.{name}")) is not None]
    lengths = {fact.path: exact_updates_of(fact.value, end.value, tokens) for fact in parts}
    total = sum(lengths.values(), Fraction(0))
    if total <= end.value:
        return
    longest = max(parts, key=lambda fact: lengths[fact.path])
    rest = floor(end.value - (total - lengths[longest.path]))
    yield parts_fit_the_run.at(
        f"{' and '.join(_length(fact, lengths[fact.path]) for fact in parts if lengths[fact.path])} "
        f"{'are' if len(parts) > 1 else 'is'} longer than the {plural(end.value, 'step')} of the run",
        longest,
        *(fact for fact in parts if fact is not longest),
        _budget(facts),
        legal=(legal(facts, longest.path, [Quantity(max(rest, 0), STEPS)]),),
        notes=(f"{_steps(total)} of {_steps(end.value)}: {rounded(total - end.value)} too many",),
    )


def _length(part: Fact, steps: Fraction) -> str:
    name = part.path.rpartition(".")[2]
    return f"{name} = {part.text}" + ("" if part.value.dimension == STEPS else f" ({_steps(steps)})")


def _steps(number: int | Fraction) -> str:
    return f"{rounded(number)} step{'' if number == 1 else 's'}"


def _budget(facts: Facts) -> Fact | None:
    return next((f for f in (facts.get("budget.tokens"), facts.get("budget.steps")) if f and f.written), None)


@invariant("FP0703", "what ends with the run, or is a share of it, has a run whose length is known")
def shares_have_a_whole(facts: Facts) -> Iterator[Finding]:
    end, wall = facts.get("budget.steps"), facts.get("budget.wall")
    if (end is not None and end.value is not None) or wall is None or wall.value is None:
        return
    schedule = facts.block("schedule")
    horizon = "budget.steps = 10_000 steps, beside or instead of `wall`"
    if schedule is not None and schedule.tag != "constant":
        place = facts.place("schedule")
        yield shares_have_a_whole.at(
            f"a {schedule.tag} schedule ends with the run, and only wall time bounds this one",
            Label(place, f"schedule = {schedule.tag}"),
            wall,
            help=(horizon, "or schedule = constant {}"),
        )
    elif schedule is not None and schedule.warmup.dimension == SHARE:
        yield shares_have_a_whole.at(
            f"warmup = {facts['schedule.warmup'].text} is a share of a run that only wall time bounds",
            facts["schedule.warmup"],
            wall,
            help=(horizon, "or give the warm-up in steps or tokens"),
        )
