"""Which rules does a job break, and what would mend it?"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache, partial
from pathlib import Path
from typing import Any

import attrs

from forgeplan.compiler.facts import Facts
from forgeplan.compiler.grouping import grouped
from forgeplan.compiler.invariants.registry import Finding, invariants
from forgeplan.compiler.passes.manager import Results
from forgeplan.compiler.project import output_roots
from forgeplan.diagnostics.diagnostic import Diagnostic, Label
from forgeplan.spec.job import Job


def check(job: Job) -> list[Diagnostic]:
    """Every fault of one view of a plan, sorted by place. A value that was rejected before silences its checks."""
    facts = facts_of(job)
    first = {found.code.id: found(facts) for found in invariants()}
    failing = {id for id, findings in first.items() if findings}
    if not failing:
        return []
    probe = Probe(job, [finding for findings in first.values() for finding in findings])
    findings = []
    for found in invariants():
        if found.code.id in failing:
            legal = partial(probe.legal, found.code.id)
            findings += found(attrs.evolve(facts, legal=legal))
    view = job.name if job.name != job.plan_name else ""
    diagnostics = (
        attrs.evolve(d, view=view, labels=d.labels or (Label(job.place),)) for d in grouped(findings, probe.remaining)
    )
    return sorted(diagnostics, key=Diagnostic.sort_key)


def facts_of(job: Job) -> Facts:
    """The facts of a job, with its analyses on demand."""
    results: list[Results] = []
    facts = Facts(
        job.leaves,
        job.derived,
        job.blocks,
        job.name,
        job.plan_name,
        job.file,
        Path(job.project),
        job.place,
        job.is_damaged,
        cache(job.bare),
        output_roots(Path(job.project)),
        results=lambda name: results[0][name],
    )
    results.append(Results(facts))
    return facts


class Probe:
    """What would remain of the faults if one value were another?"""

    def __init__(self, job: Job, base: Iterable[Finding]) -> None:
        self._job = job
        self._base = {finding.key for finding in base}
        self._known: dict[tuple[str, str], frozenset[tuple[str, str]] | None] = {}

    def remaining(self, path: str, value: Any) -> frozenset[tuple[str, str]] | None:
        """Errors as (code, message) with this value at the path; None where the value itself is rejected."""
        at = (path, repr(value))
        if at not in self._known:
            self._known[at] = self._findings(path, value)
        return self._known[at]

    def legal(self, asking: str, path: str, candidates: Iterable[Any]) -> list[Any]:
        """Candidates that leave no fault of the asking code and bring no new one; unrelated faults may stay."""
        found = []
        for candidate in candidates:
            remaining = self.remaining(path, candidate)
            if remaining is not None and not any(key[0] == asking or key not in self._base for key in remaining):
                found.append(candidate)
        return found

    def _findings(self, path: str, value: Any) -> frozenset[tuple[str, str]] | None:
        varied = self._job.vary({path: value})
        if path not in varied.leaves or (varied.plan is None and self._job.plan is not None):
            return None
        facts = facts_of(varied)
        return frozenset(f.key for found in invariants() for f in found(facts) if f.is_error)
