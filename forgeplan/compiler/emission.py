"""What does a checked job become?"""

from __future__ import annotations

import platform
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version

from forgeplan.compiler.checking import facts_of
from forgeplan.compiler.facts import Facts
from forgeplan.compiler.wording import written_at
from forgeplan.diagnostics.refusal import InternalError
from forgeplan.diagnostics.source import Sources
from forgeplan.plan.execution_plan import FORMAT_VERSION, Estimates, ExecutionPlan, TensorFact
from forgeplan.plan.hashes import seal
from forgeplan.spec.job import Job
from forgeplan.spec.provenance import Leaf, Origin

PACKAGES = ("forgeplan-torch", "torch", "torchao", "attrs", "cattrs", "lark", "networkx", "tokenizers")
"""Whose versions a plan records. Reading a version imports nothing."""


def emit(
    job: Job, *, created_by: str = "", sources: Sources | None = None, tools: Mapping[str, str] | None = None
) -> ExecutionPlan:
    """The sealed execution plan of a whole job without errors.

    `sources` gives provenance its lines and columns; `tools` replaces the recorded versions. Raises InternalError for a
    job with rejected parts.
    """
    if job.plan is None:
        raise InternalError("a job with rejected parts is to become an execution plan")
    facts = facts_of(job)
    parameters = facts.results("parameters").all
    plan = ExecutionPlan(
        format_version=FORMAT_VERSION,
        name=job.name,
        run_dir=str(job.derived.get("run.dir") or f"runs/{job.name}"),
        job=job.plan,
        steps=facts.results("horizon").steps,
        mesh=facts.results("mesh"),
        program=facts.results("program"),
        tensors=tuple(TensorFact(p.name, p.shape, job.plan.precision.params) for p in parameters),
        rank_classes=facts.results("shards").classes,
        estimates=estimates(facts),
        provenance={path: provenance(leaf, sources or Sources()) for path, leaf in sorted(job.leaves.items())},
        sources=dict(sorted(job.sources.items())),
        tools=dict(tool_versions() if tools is None else tools) | ({"command": created_by} if created_by else {}),
    )
    return seal(plan)


def estimates(facts: Facts) -> Estimates:
    """Counts for a person."""
    parameters, flops, batch = (facts.results(name) for name in ("parameters", "flops", "batch"))
    steps = facts.results("horizon").steps
    return Estimates(
        num_parameters=parameters.num_total,
        num_active_parameters=parameters.num_active,
        flops_per_token=flops.full,
        flops_per_token_causal=flops.causal,
        tokens_per_step=batch.tokens,
        counted_tokens=None if steps is None else steps * batch.tokens,
    )


def provenance(leaf: Leaf, sources: Sources) -> tuple[str, ...]:
    """Every layer that set a value, strongest first: `dense.forge:12:15 plan dense = 3e-4`."""
    return tuple(_layer(origin, sources) for origin in leaf.origins)


def _layer(origin: Origin, sources: Sources) -> str:
    place = written_at(origin.span, sources)
    return f"{place} {origin.layer} = {origin.text}".strip()


def tool_versions() -> dict[str, str]:
    """Versions of Python and of the packages that take part in a run, where they are installed."""
    found = {"python": platform.python_version()}
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found
