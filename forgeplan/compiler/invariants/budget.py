"""Does the run end?"""

from __future__ import annotations

from collections.abc import Iterator

from forgeplan.compiler.changes import Change
from forgeplan.compiler.facts import Facts
from forgeplan.compiler.invariants.registry import Finding, invariant
from forgeplan.compiler.wording import amount, plural
from forgeplan.diagnostics.diagnostic import Label
from forgeplan.spec.quantity import TOKENS


@invariant("FP0902", "the budget bounds the run: one of tokens and steps, or wall time alone")
def one_horizon(facts: Facts) -> Iterator[Finding]:
    tokens, steps, wall = (facts.get(f"budget.{name}") for name in ("tokens", "steps", "wall"))
    has_tokens = tokens is not None and tokens.value is not None
    if tokens is not None and steps is not None and has_tokens and steps.written and steps.value is not None:
        total = steps.value * facts["batch.tokens"].value
        yield one_horizon.at(
            f"the run has two ends: {tokens.text}, and {plural(steps.value, 'step')} of "
            f"{amount(facts['batch.tokens'].value, TOKENS)} = {amount(total, TOKENS)}",
            steps,
            tokens,
            help=("delete one of the two, or set it to none: `budget.tokens = none` or `budget.steps = none`",),
            changes=(Change("budget.tokens", "none"), Change("budget.steps", "none")),
        )
    if not has_tokens and (steps is None or steps.value is None) and (wall is None or wall.value is None):
        yield one_horizon.at(
            "nothing bounds the run: the budget has neither tokens nor steps nor wall time",
            Label(facts.place("budget")),
            help=("budget = { tokens = 20B tokens }", "or { steps = 10_000 steps }, or { wall = 12h }"),
        )
