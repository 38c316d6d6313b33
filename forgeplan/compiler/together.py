"""What is wrong between several runs of one file?"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from forgeplan.compiler.invariants.outputs import FP0803, PATHS
from forgeplan.diagnostics.diagnostic import Diagnostic, Label
from forgeplan.diagnostics.span import SCHEMA
from forgeplan.spec.job import Job


def check_together(jobs: Sequence[Job]) -> list[Diagnostic]:
    """FP0803 for each place that several plans or sweep cells write to. A profile is another way to run its plan."""
    writers: dict[Path, dict[str, tuple[Job, str]]] = {}
    for job in jobs:
        for path in PATHS:
            leaf = job.leaves.get(path)
            if leaf is not None and isinstance(leaf.value, str) and "@" not in job.name:
                place = (Path(job.project) / leaf.value).resolve()
                writers.setdefault(place, {}).setdefault(job.name, (job, path))
    found = [_clash(place, list(runs.values())) for place, runs in writers.items() if len(runs) > 1]
    return sorted(found, key=Diagnostic.sort_key)


def _clash(place: Path, runs: list[tuple[Job, str]]) -> Diagnostic:
    labels: dict[tuple[str, int], Label] = {}
    for job, path in runs:
        span = job.leaves[path].origin.span
        if span.file != SCHEMA:
            labels.setdefault((span.file, span.start), Label(span, f"`{job.name}` writes here"))
    names = [f"`{job.name}`" for job, _ in runs]
    shown = ", ".join(names[:4]) + (f" and {len(names) - 4} more" if len(names) > 4 else "")
    first, *others = labels.values() if labels else [None]
    path = runs[0][1]
    return FP0803.at(
        first,
        f"{len(runs)} runs write to {place.name}: {shown}",
        *(label for label in others if label is not None),
        help=f'give each its own: {path} = "{runs[0][0].leaves[path].value}/${{run.name}}"',
    )
