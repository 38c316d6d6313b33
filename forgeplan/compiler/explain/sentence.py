"""What is the plan, in a sentence?"""

from __future__ import annotations

from fractions import Fraction

from forgeplan.compiler.explain.page import wrapped
from forgeplan.compiler.wording import fixed, plan_text, plural
from forgeplan.plan.execution_plan import ExecutionPlan
from forgeplan.plan.mesh import Mesh
from forgeplan.spec import types as t

_SCALES = ((10**12, "T"), (10**9, "B"), (10**6, "M"), (10**3, "k"))


def lines(plan: ExecutionPlan, width: int) -> list[str]:
    """Name and hash on one line, then the sentence."""
    cluster = plan.job.cluster
    end = _end(plan)
    number, active = plan.estimates.num_parameters, plan.estimates.num_active_parameters
    of_these = "" if active == number else f" ({short(active)} active)"
    sentence = (
        f"A {short(number)} {plan.job.model.tag}{of_these}, trained {end} on {plural(cluster.nodes, 'node')} × "
        f"{plural(cluster.devices_per_node, 'device')} ({cluster.arch}), {_split(plan.mesh)}, "
        f"computing in {plan.job.precision.compute} with {plan.job.precision.params} weights."
    )
    name, hash_ = plan.name, f"plan {plan.meaning[:12]}"
    return [name + hash_.rjust(max(width - len(name), len(hash_) + 1)), *wrapped(sentence, width)]


def _split(mesh: Mesh) -> str:
    """Over which ranks the model is divided, in words where they are data ranks alone."""
    if any(mesh.degrees[axis] > 1 for axis in ("pp", "cp", "tp")) or mesh.ep > 1:
        axes = " · ".join(f"{axis} {degree:,}" for axis, degree in mesh.degrees.items() if degree > 1)
        return f"laid out as {axes}" + (f", experts on ep {mesh.ep:,}" if mesh.ep > 1 else "")
    split = f"sharded over {plural(mesh.dp_shard, 'rank')}" if mesh.dp_shard > 1 else "on one rank"
    if mesh.dp_replicate == 1:
        return split
    return f"in {plural(mesh.dp_replicate, 'replica')}" + (f", each {split}" if mesh.dp_shard > 1 else "")


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
