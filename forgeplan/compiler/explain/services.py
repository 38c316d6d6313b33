"""What happens beside training?"""

from __future__ import annotations

from forgeplan.compiler.explain.page import table
from forgeplan.compiler.wording import plan_text
from forgeplan.plan.execution_plan import ExecutionPlan
from forgeplan.spec import types as t


def lines(plan: ExecutionPlan, width: int) -> list[str]:
    """Evaluations, checkpoints, guard and metrics, a row each; texts too long for the width are cut at its edge."""
    rows = [*_evaluations(plan), *_checkpoint(plan), *_guard(plan)]
    every = plan_text(plan.job.metrics.every, t.STEP_COUNT)
    rows.append(("metrics", f"every {every}", ", ".join(["metrics.jsonl", *(s.tag for s in plan.job.metrics.sinks)])))
    return [line if len(line) <= width else line[: width - 1] + "…" for line in table(rows, "lll")]


def _evaluations(plan: ExecutionPlan) -> list[tuple[str, str, str]]:
    found = []
    for name, node in sorted(plan.job.eval.items()):
        held = "" if node.split is None else f", {plan_text(node.split, t.PORTION)} held out"
        batches = "all batches" if node.batches == "all" else f"{node.batches:,} microbatches"
        found.append((f"eval {name}", f"every {plan_text(node.every)}", f"{batches} of `{node.source}`{held}"))
    return found


def _checkpoint(plan: ExecutionPlan) -> list[tuple[str, str, str]]:
    node = plan.job.checkpoint
    if node is None:
        return [("checkpoint", "at the end", f"and on a stop signal, in {plan.run_dir}")]
    kept = "all kept" if node.keep == "all" else f"the last {node.keep} kept"
    return [("checkpoint", f"every {plan_text(node.every)}", f"{kept}, in {node.path}")]


def _guard(plan: ExecutionPlan) -> list[tuple[str, str, str]]:
    guard = plan.job.guard
    clip = "no clipping" if guard.clip is None else f"gradient norm clipped at {plan_text(guard.clip)}"
    budget = getattr(guard.nonfinite, "budget", None)
    policy = guard.nonfinite.tag + ("" if budget is None else f" {plan_text(budget, t.STEP_COUNT)} at most")
    return [("guard", clip, f"non-finite: {policy}")]
