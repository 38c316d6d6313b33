"""Which rules does a job break, and what would mend it?"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any

import attrs

from forgeplan.compiler.changes import Writes, fixes_of
from forgeplan.compiler.facts import Facts, is_bare_option
from forgeplan.compiler.grouping import grouped
from forgeplan.compiler.invariants.registry import Finding, invariants
from forgeplan.compiler.passes.manager import Results
from forgeplan.compiler.project import output_roots
from forgeplan.diagnostics.diagnostic import Diagnostic, Label
from forgeplan.spec.job import Job


def check(job: Job, writes: Writes | None = None) -> list[Diagnostic]:
    """Every fault of one view of a plan, sorted by place. A value that was rejected before silences its checks.

    `writes` knows the text, and turns legal values into fixes.
    """
    facts = facts_of(job)
    first = {found.code.id: found.findings(facts) for found in invariants()}
    failing = {id for id, findings in first.items() if findings}
    if not failing:
        return []
    probe = Probe(job, first)
    findings = []
    for found in invariants():
        if found.code.id in failing:
            legal = partial(probe.legal, found.code.id)
            findings += found(attrs.evolve(facts, legal=legal))
    view = job.name if job.name != job.plan_name else ""
    diagnostics = (_told(finding, job, view, writes) for finding in grouped(findings, probe.remaining))
    return sorted(diagnostics, key=Diagnostic.sort_key)


def _told(finding: Finding, job: Job, view: str, writes: Writes | None) -> Diagnostic:
    """A finding as a diagnostic of a view, with its changes as fixes."""
    found = finding.diagnostic
    fixes = fixes_of(finding.changes, writes, found.fixes) if writes is not None else ()
    labels = found.labels or (Label(job.place),)
    return attrs.evolve(found, view=view, labels=labels, fixes=(*found.fixes, *fixes))


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

    def __init__(self, job: Job, first: Mapping[str, list[Finding] | None]) -> None:
        self._job = job
        self._base = {finding.key for findings in first.values() for finding in findings or ()}
        self._codes = {code for code, findings in first.items() if findings is None or findings}
        """Codes of present faults, and of checks that a rejected value silences."""
        self._known: dict[str, frozenset[tuple[str, str]] | None] = {}

    def remaining(self, values: Mapping[str, Any]) -> frozenset[tuple[str, str]] | None:
        """Errors as (code, message) with these values at their paths; None where a value itself is rejected."""
        at = repr(sorted(values.items()))
        if at not in self._known:
            self._known[at] = self._findings(values)
        return self._known[at]

    def legal(self, asking: str, candidates: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
        """Values that leave no fault of the asking code and bring no new one; unrelated faults may stay.

        If there are none: those that bring no fault of another code than now, or than what is now not to be judged.
        """
        mending = [(c, left) for c in candidates if (left := self._without(asking, c)) is not None]
        strictly = [c for c, left in mending if left <= self._base]
        return strictly or [c for c, left in mending if {code for code, _ in left} <= self._codes]

    def _without(self, asking: str, values: Mapping[str, Any]) -> frozenset[tuple[str, str]] | None:
        """What remains with these values, or None where a fault of the asking code does."""
        remaining = self.remaining(values)
        return None if remaining is None or any(code == asking for code, _ in remaining) else remaining

    def _findings(self, values: Mapping[str, Any]) -> frozenset[tuple[str, str]] | None:
        varied = _varied(self._job, values)
        if varied is None or (varied.plan is None and self._job.plan is not None):
            return None
        facts = facts_of(varied)
        return frozenset(f.key for found in invariants() for f in found(facts) if f.is_error)


def _varied(job: Job, values: Mapping[str, Any]) -> Job | None:
    """The job with other values, also of options of transforms that `apply` leaves out; None where one is rejected."""
    bare = {path: value for path, value in values.items() if is_bare_option(path, job.leaves)}
    rest = {path: value for path, value in values.items() if path not in bare}
    varied = job.vary(rest) if rest else job
    if not rest.keys() <= varied.leaves.keys():
        return None
    for path, value in bare.items():
        _, name, option = path.split(".", 2)
        leaves, options = varied.bare(name)
        if path not in leaves:
            return None
        changed = {**leaves, path: attrs.evolve(leaves[path], value=value)}, _evolved(options, option, value)
        varied = attrs.evolve(varied, bare=partial(_bare, varied.bare, name, changed))
    return varied


def _bare(others: Callable[[str], Any], name: str, known: Any, asked: str) -> Any:
    return known if asked == name else others(asked)


def _evolved(options: Any, path: str, value: Any) -> Any:
    """The options of a transform with another value of one of them: `schedule`, `weights.head`."""
    first, _, rest = path.partition(".")
    return attrs.evolve(options, **{first: _evolved(getattr(options, first), rest, value) if rest else value})
