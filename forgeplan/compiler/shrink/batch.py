"""How few and short sequences make a step like the plan's, and how few steps a run?"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from math import lcm
from typing import Any

from forgeplan.compiler.facts import Facts
from forgeplan.compiler.invariants.pipeline import fits_microbatches
from forgeplan.compiler.passes.float8 import MULTIPLE
from forgeplan.compiler.shrink.alike import Choice, Features, Found, most_alike
from forgeplan.compiler.shrink.meshes import Arrangement
from forgeplan.spec.quantity import STEPS, Quantity

STEPS_OF_A_TRIAL = 5
LEAST_LENGTH = 16
MOST_ROUNDS = 4


def small_step(facts: Facts, at: Arrangement) -> Found:
    """Microbatches, their sequences and the length of these; what the model says of lengths keeps its proportion."""
    number = _few_microbatches(facts, at)
    micro = min(facts["batch.micro"].value, 2)
    length = _short(facts, at, micro)
    values = {"batch.accumulation": number.best, "batch.micro": micro, "batch.length": length}
    return number.found(values | _spans_of_positions(facts, length))


def _few_microbatches(facts: Facts, at: Arrangement) -> Choice[int]:
    schedule, pp = facts.transform("pp").schedule, facts["mesh.pp"].value

    def features(number: int, pp: int) -> Features:
        found: dict[str, Any] = {"several microbatches": number > 1}
        if pp > 1:
            found |= {
                "more microbatches than stages": number > pp,
                "two microbatches for each stage": number >= 2 * pp,
                "as many microbatches for each stage": number % pp == 0,
            }
        return found

    most = MOST_ROUNDS * at.mesh.pp
    fitting = [n for n in range(1, most + 1) if at.mesh.pp == 1 or fits_microbatches(schedule, at.mesh.pp, n)]
    wanted = features(facts["batch.accumulation"].value, pp)
    return most_alike(wanted, fitting, lambda number: features(number, at.mesh.pp))


def _short(facts: Facts, at: Arrangement, micro: int) -> int:
    """The least length whose positions divide over cp, tp and, for float8 products, rows of 16."""
    cp, tp = at.mesh.cp, at.mesh.tp
    parts = 2 * cp if cp > 1 and facts.transform("cp").balance == "head_tail" else cp
    if tp > 1 and facts.transform("tp").sequence:
        parts = lcm(parts, cp * tp)
    if facts.get("apply.fp8.recipe") is not None:
        parts = lcm(parts, MULTIPLE * cp * tp)
    return parts * -(-LEAST_LENGTH // parts)


def _spans_of_positions(facts: Facts, length: int) -> dict[str, Any]:
    """Context, window and the unstretched context, as long beside the length as they were, but not 0."""
    whole = facts["batch.length"].value
    found: dict[str, Any] = {"model.context": _beside(facts["model.context"].value, whole, length)}
    for path in ("model.window", "model.rope.scaling.original"):
        fact = facts.get(path)
        if fact is not None and fact.value is not None:
            found[path] = min(_beside(fact.value, whole, length), found["model.context"])
    return found


def _beside(span: int, whole: int, length: int) -> int:
    """Shorter or longer than the length, or as long, if it was so before; at most twice as long."""
    if span >= whole:
        return length if span == whole else 2 * length
    return min(max(1, round(span * length / whole)), length - 1)


def few_steps(facts: Facts) -> Found:
    """A run of few steps, whose schedule has the parts that it had."""
    horizon = facts.results("horizon")
    values: dict[str, Any] = {"budget.tokens": None, "budget.wall": None, "budget.steps": STEPS_OF_A_TRIAL}
    parts = {name: n for name in ("warmup", "decay") if (n := getattr(horizon, name)) is not None}
    total = STEPS_OF_A_TRIAL

    def features(lengths: tuple[int, ...], total: int | None) -> Features:
        left = None if total is None else total - sum(lengths)
        rest = {} if left is None else {"steps at the peak or between": left > 0}
        return {name: n > 0 for name, n in zip(parts, lengths, strict=True)} | rest

    wanted = features(tuple(parts.values()), horizon.steps)
    chosen = most_alike(wanted, _lengths(len(parts), total), lambda lengths: features(lengths, total))
    named = zip(parts, chosen.best, strict=True)
    return chosen.found(values | {f"schedule.{name}": Quantity(n, STEPS) for name, n in named})


def _lengths(number: int, total: int) -> Iterator[tuple[int, ...]]:
    """Two steps for each part, if that is enough; none or more else."""
    for lengths in product((2, 0, 3, total), repeat=number):
        if sum(lengths) <= total:
            yield lengths
