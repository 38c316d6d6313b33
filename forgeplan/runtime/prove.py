"""Does a plan, shrunk with all that it has, train in its layout what one process trains?"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from itertools import groupby
from math import isfinite
from operator import attrgetter
from typing import Any

from attrs import asdict, frozen

from forgeplan.plan.proof import Proof, Trial
from forgeplan.runtime.certificate import DEVIATES, FAILED, FORMAT_VERSION, PROVEN
from forgeplan.runtime.manifest import versions
from forgeplan.runtime.selftest.bench import Bench
from forgeplan.runtime.selftest.compare import culprit, worst
from forgeplan.runtime.selftest.pool import RankFailed
from forgeplan.runtime.selftest.report import measured
from forgeplan.runtime.selftest.result import Deviation

MOST_FAULTS = 20
"""Deviations beyond what is allowed that a certificate lists."""


@frozen
class Tried:
    """How a trial fared: what was compared, or why nothing could be."""

    trial: Trial
    deviations: tuple[Deviation, ...]
    reason: str
    details: str
    seconds: float

    @property
    def verdict(self) -> str:
        if not self.deviations:
            return FAILED
        return PROVEN if worst(list(self.deviations)).is_same else DEVIATES

    @property
    def telling(self) -> Deviation | None:
        """The largest deviation; of a trial that differs, the one that says most about the fault."""
        return culprit(list(self.deviations)) if self.deviations else None

    @property
    def summary(self) -> str:
        """In one line, what is wrong."""
        if self.telling is None:
            return self.reason
        return f"{self.telling.what} is off by {measured(self.telling)}"


def tried(proof: Proof, bench: Bench, begins: Callable[[Trial], object] = lambda trial: None) -> Iterator[Tried]:
    """Train one trial after the other, on ranks and in one process. `begins` hears of each before."""
    for trial in proof.trials:
        begins(trial)
        start = time.monotonic()
        try:
            found, reason, details = bench.deviations(trial.plan, trial.plan.job.batch.pack), "", ""
        except RankFailed as error:
            found, reason, details = [], error.reason, error.details
        yield Tried(trial, tuple(found), reason, details, time.monotonic() - start)


def certificate(proof: Proof, results: list[Tried]) -> dict[str, Any]:
    """The document that `runtime/certificate.py` writes, of all trials."""
    verdicts = {result.verdict for result in results}
    verdict = next(word for word in (FAILED, DEVIATES, PROVEN) if word in verdicts)
    largest = [deviation for result in results for deviation in result.deviations]
    return {
        "format_version": FORMAT_VERSION,
        "plan": {"name": proof.plan.name, "meaning": proof.plan.meaning},
        "verdict": verdict,
        "summary": next((result.summary for result in results if result.verdict == verdict != PROVEN), None),
        "largest_deviation": _entry(worst(largest)) if largest else None,
        "time": datetime.now(UTC).isoformat(timespec="seconds"),
        "seconds": round(sum(result.seconds for result in results), 3),
        "versions": versions(),
        "trials": [_of_trial(result) for result in results],
        "replaced": [asdict(change) for change in proof.replaced],
        "left_out": [asdict(left) for left in proof.left_out],
    }


def _of_trial(result: Tried) -> dict[str, Any]:
    plan, kinds = result.trial.plan, groupby(result.deviations, key=attrgetter("kind"))
    faults = sorted((d for d in result.deviations if not d.is_same), key=attrgetter("excess"), reverse=True)
    return {
        "mesh": plan.mesh.degrees | {"ep": plan.mesh.ep},
        "ranks": plan.mesh.world,
        "nodes": plan.job.cluster.nodes,
        "number_format": plan.job.precision.params,
        "parameters": plan.estimates.num_parameters,
        "steps": plan.steps,
        "meaning": plan.meaning,
        "verdict": result.verdict,
        "shrunk": [{"path": change.path, "was": change.was, "now": change.now} for change in result.trial.shrunk],
        "deviations": [_entry(worst(list(found))) for _, found in kinds],
        "faults": [_entry(fault) for fault in faults[:MOST_FAULTS]],
        "num_faults": len(faults),
        "reason": result.reason or None,
        "details": result.details or None,
        "seconds": round(result.seconds, 3),
    }


def _entry(deviation: Deviation) -> dict[str, Any]:
    return {
        "kind": deviation.kind,
        "what": deviation.what,
        "value": deviation.value if isfinite(deviation.value) else None,
        "within": deviation.within,
    }
