"""How is a step made, and how many make the run?"""

from __future__ import annotations

from fractions import Fraction

from forgeplan.compiler.explain.page import table, wrapped
from forgeplan.compiler.wording import fixed, listing, plan_text, plural
from forgeplan.plan.execution_plan import ExecutionPlan
from forgeplan.spec import types as t


def lines(plan: ExecutionPlan, width: int) -> list[str]:
    """The product that makes a step, the data it draws, and the number of steps."""
    batch, ranks = plan.job.batch, plan.mesh.data_ranks
    sequences = batch.accumulation * batch.micro * ranks
    rows = [
        ("", f"{batch.micro:,}", "sequences", "of a microbatch (batch.micro)"),
        ("×", f"{batch.length:,}", "tokens", "of a sequence (batch.length)"),
        ("×", f"{ranks:,}", "data ranks", "dp_replicate · dp_shard"),
        ("×", f"{batch.accumulation:,}", "microbatches", "of a step on each rank (batch.accumulation)"),
        (
            "=",
            f"{plan.estimates.tokens_per_step:,}",
            "tokens a step",
            f"{plural(sequences, 'sequence')} (batch.global)",
        ),
    ]
    texts = (_horizon(plan), _data(plan), _shared(plan))
    return [*table(rows, "lrll"), "", *(line for text in texts for line in wrapped(text, width))]


def _horizon(plan: ExecutionPlan) -> str:
    budget = plan.job.budget
    if plan.steps is None:
        return f"No number of steps: the run ends after {plan_text(budget.wall, t.DURATION)} of training."
    wall = "" if budget.wall is None else f", or {plan_text(budget.wall, t.DURATION)} of training if that is sooner"
    if budget.tokens is None:
        return f"{plural(plan.steps, 'step')} = {plan.estimates.counted_tokens:,} tokens{wall}."
    exact = Fraction(budget.tokens, plan.estimates.tokens_per_step)
    rounding = "" if exact.denominator == 1 else f", {fixed(exact, 2)} rounded up, as the last step is whole"
    return (
        f"{budget.tokens:,} tokens ÷ {plan.estimates.tokens_per_step:,} = {plural(plan.steps, 'step')}{rounding}{wall}."
    )


def _data(plan: ExecutionPlan) -> str:
    sources, mixture = plan.job.sources, plan.job.mixture
    if mixture is None:
        name, source = next(iter(sources.items()))
        return f"All sequences come from `{name}` ({source.tag})."
    drawn = {n: w for n, w in mixture.items() if w.amount > 0}
    return (
        "Sequences come from " + ", ".join(f"{plan_text(w)} `{n}` ({sources[n].tag})" for n, w in drawn.items()) + "."
    )


def _shared(plan: ExecutionPlan) -> str:
    """Which axes do not multiply the batch, and what a rank sees of it."""
    axes = [axis for axis in ("pp", "cp", "tp") if plan.mesh.degrees[axis] > 1]
    if not axes:
        return ""
    part = plan.job.batch.length // plan.mesh.cp
    own = f", each position of cp on {part:,} tokens of each" if plan.mesh.cp > 1 else ""
    return f"Ranks that differ in {listing(axes, ' or ')} alone work on the same sequences{own}."
