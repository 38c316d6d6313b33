"""What do the commands above a plan answer?"""

from __future__ import annotations

from forgeplan.compiler import emit
from forgeplan.compiler.explain import explain
from forgeplan.compiler.wording import plural
from forgeplan.diagnostics.diagnostic import Severity
from forgeplan.diagnostics.formats import render_all, summary
from forgeplan.lsp.snapshot import Snapshot
from forgeplan.plan.execution_plan import ExecutionPlan


def compiled(snapshot: Snapshot, plan: str) -> str:
    """Whether a plan compiles, and to what; nothing is written."""
    found = _plan(snapshot, plan)
    if isinstance(found, str):
        return found
    ranks, parameters = found.mesh.world, found.estimates.num_parameters
    return f"{plan} compiles: {parameters:,} parameters on {plural(ranks, 'rank')}, plan {found.meaning[:12]}"


def explained(snapshot: Snapshot, plan: str) -> str:
    """The page of a plan, or what is wrong with it."""
    found = _plan(snapshot, plan)
    return found if isinstance(found, str) else explain(found)


def _plan(snapshot: Snapshot, plan: str) -> ExecutionPlan | str:
    analysis = snapshot.analysis
    if analysis is None or not snapshot.is_current:
        return "the document is not analysed yet"
    if plan not in analysis.plans:
        return f"{snapshot.name} has no plan `{plan}` that can be compiled"
    job = analysis.job(plan)
    found = analysis.concerning(job)
    if any(one.severity is Severity.ERROR for one in found):
        return f"{render_all(found, analysis.sources)}\n\n{summary(found)}"
    return emit(job, created_by="forgeplan lsp", sources=analysis.sources)
