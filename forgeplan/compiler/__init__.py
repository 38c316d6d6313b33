"""What can be asked about a job? Checks, the execution plan, derived values, graph and explanation.

Everything heavy is imported when it is first needed, so that checking a plan stays quick.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from networkx import DiGraph

    from forgeplan.compiler.changes import Writes
    from forgeplan.diagnostics.diagnostic import Diagnostic
    from forgeplan.diagnostics.source import Sources
    from forgeplan.plan.execution_plan import ExecutionPlan
    from forgeplan.spec.derived import Derived
    from forgeplan.spec.job import Job


def check(job: Job, writes: Writes | None = None) -> list[Diagnostic]:
    """Every rule that one view of a plan breaks, sorted by place; nothing is raised for a bad plan.

    `writes` knows the text, and turns legal values into fixes.
    """
    from forgeplan.compiler.checking import check

    return check(job, writes)


def check_together(jobs: Sequence[Job]) -> list[Diagnostic]:
    """What is wrong between the views of one file: two runs that write to one place."""
    from forgeplan.compiler.together import check_together

    return check_together(jobs)


def emit(
    job: Job, *, created_by: str = "", sources: Sources | None = None, tools: Mapping[str, str] | None = None
) -> ExecutionPlan:
    """The execution plan of a whole job that passed every check, sealed. See `compiler/emission.py`."""
    from forgeplan.compiler.emission import emit

    return emit(job, created_by=created_by, sources=sources, tools=tools)


def graph_of(job: Job) -> DiGraph:
    """The IR of a job without errors, with its program placed and its modules sharded; `draw` makes pictures of it."""
    from forgeplan.compiler.checking import facts_of

    return facts_of(job).results("graph")


def derived_values() -> Mapping[str, Derived]:
    """The values that the compiler computes for plans to read, by path."""
    from forgeplan.compiler.derived import derived_values

    return derived_values()
