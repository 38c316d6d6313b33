"""What is the plan, in a sentence?"""

from __future__ import annotations

from fractions import Fraction

from forgeplan.compiler.explain.page import wrapped
from forgeplan.compiler.wording import fixed, plan_text, plural
from forgeplan.plan.execution_plan import ExecutionPlan
from forgeplan.spec import types as t

_SCALES = ((10**12, "T"), (10**9, "B"), (10**6, "M"), (10**3, "k"))


def lines(plan: ExecutionPlan, width: int) -> list[str]:
    """Name and hash on one line, then the sentence."""
    cluster = plan.job.cluster
    mesh = plan.mesh
    end = _end(plan)
    split = f"sharded over {plural(mesh.fsdp_degree, 'rank')}" if mesh.fsdp_degree > 1 else "on one rank"
    if mesh.dp_replicate > 1:
        split = f"in {plural(mesh.dp_replicate, 'replica')}" + (f", each {split}" if mesh.fsdp_degree > 1 else "")
    sentence = (
        f"A {short(plan.estimates.num_parameters)} {plan.job.model.tag}, trained {end} on "
        f"{plural(cluster.nodes, 'node')} × {plural(cluster.devices_per_node, 'device')} ({cluster.arch}), {split}, "
        f"computing in {plan.job.precision.compute} with {plan.job.precision.params} weights."
    )
    name, hash_ = plan.name, f"plan {plan.meaning[:12]}"
    return [name + hash_.rjust(max(width - len(name), len(hash_) + 1)), *wrapped(sentence, width)]


def _end(plan: ExecutionPlan) -> str:
    budget = plan.job.budget
    until = "" if budget.wall is None else f"{plan_text(budget.wall, t.DURATION)} at most"
    if plan.estimates.counted_tokens is None:
        return f"for {until}"
    length = f"on {short(plan.estimates.counted_tokens)} tokens in {plural(plan.steps or 0, 'step')}"
    return f"{length} ({until})" if until else length


def short(number: int) -> str:
    """`70.6B`, `2.1M`, `512`."""
    for size, unit in _SCALES:
        if number >= size:
            return f"{fixed(Fraction(number, size), 2 if number < 10 * size else 1)}{unit}"
    return str(number)
