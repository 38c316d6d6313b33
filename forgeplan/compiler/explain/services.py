"""What happens beside training?"""

from __future__ import annotations

from forgeplan.compiler.explain.page import wrapped
from forgeplan.compiler.wording import plan_text
from forgeplan.plan.execution_plan import ExecutionPlan
from forgeplan.spec import types as t


def lines(plan: ExecutionPlan, width: int) -> list[str]:
    """Evaluations, checkpoints, guard and metrics: a name and what it does."""
    rows = [*_evaluations(plan), *_checkpoint(plan), *_guard(plan)]
    every = plan_text(plan.job.metrics.every, t.STEP_COUNT)
    rows.append(("metrics", f"every {every}", ", ".join(["metrics.jsonl", *(s.tag for s in plan.job.metrics.sinks)])))
    size = max(len(name) for name, _, _ in rows)
    return [
        line
        for name, when, what in rows
        for line in wrapped(f"{name:<{size}}  {when}: {what}", width, " " * (size + 2))
    ]


def _evaluations(plan: ExecutionPlan) -> list[tuple[str, str, str]]:
    found = []
    for name, node in sorted(plan.job.eval.items()):
        held = "" if node.split is None else f", {plan_text(node.split, t.PORTION)} held out"
        batches = "all batches" if node.batches == "all" else f"{node.batches:,} microbatches"
        found.append((f"eval {name}", f"every {plan_text(node.every)}", f"{batches} of `{node.source}`{held}"))
    return found


def _checkpoint(plan: ExecutionPlan) -> list[tuple[str, str, str]]:
    node = plan.job.checkpoint
    when = "at the end and on a stop signal" if node.every is None else f"every {plan_text(node.every)}"
    kept = "all kept" if node.keep == "all" else f"the last {node.keep} kept"
    return [("checkpoint", when, f"{kept}, in {node.path}")]


def _guard(plan: ExecutionPlan) -> list[tuple[str, str, str]]:
    guard = plan.job.guard
    clip = "no clipping" if guard.clip is None else f"gradient norm clipped at {plan_text(guard.clip)}"
    budget = getattr(guard.nonfinite, "budget", None)
    policy = guard.nonfinite.tag + ("" if budget is None else f" {plan_text(budget, t.STEP_COUNT)} at most")
    return [("guard", "each step", f"{clip}; non-finite values: {policy}")]
