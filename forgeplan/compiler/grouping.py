"""Which of several faults are one? Those that one legal value of one field repairs all together."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import attrs

from forgeplan.compiler.invariants.registry import Finding
from forgeplan.compiler.wording import plan_text

Remaining = Callable[[Mapping[str, Any]], frozenset[tuple[str, str]] | None]

NEAREST_THE_MODEL = (
    *("FP05", "FP0425", "FP0427", "FP0428"),
    *("FP0412", "FP0413", "FP0414", "FP0415", "FP0416", "FP0405", "FP0401", "FP0402", "FP0403"),
)
"""Which fault of a group speaks for it: the model's shape, what no degree of an axis can do to it, what this one does,
the mesh, then the rest."""


def grouped(findings: Iterable[Finding], remaining: Remaining) -> list[Finding]:
    """One finding for each cause: the others of a group are notes on it, with their codes."""
    findings = list(findings)
    errors = [finding for finding in findings if finding.is_error]
    done = [finding for finding in findings if not finding.is_error]
    while len(errors) > 1:
        best = max(_groups(errors, remaining), key=lambda group: len(group[2]), default=None)
        if best is None or len(best[2]) < 2:
            break
        path, value, group = best
        done.append(_merged(path, value, group))
        errors = [finding for finding in errors if finding not in group]
    return done + errors


def _groups(errors: list[Finding], remaining: Remaining) -> Iterable[tuple[str, Any, list[Finding]]]:
    """For each field that one of the faults names: a legal value, and the faults it repairs."""
    for finding in errors:
        for path, values in finding.repairs.items():
            left = remaining({path: values[0]})
            if left is not None:
                yield path, values[0], [other for other in errors if other.key not in left]


def _merged(path: str, value: Any, group: list[Finding]) -> Finding:
    """The one that speaks for a group; what mends all of them is offered first."""
    speaker, *others = sorted(group, key=_nearness)
    diagnostic = speaker.diagnostic
    notes = tuple(f"{other.diagnostic.code}: {other.diagnostic.message}" for other in others)
    help = diagnostic.help
    if path not in speaker.repairs:
        help = (*help, f"{path} = {plan_text(value)} satisfies all of them")
    mending = [change for finding in (speaker, *others) for change in finding.changes if change.path == path]
    return attrs.evolve(
        speaker,
        diagnostic=attrs.evolve(diagnostic, notes=(*diagnostic.notes, *notes), help=help),
        changes=tuple(dict.fromkeys((*mending, *speaker.changes))),
    )


def _nearness(finding: Finding) -> tuple[int, str]:
    code = finding.diagnostic.code
    for rank, prefix in enumerate(NEAREST_THE_MODEL):
        if code.startswith(prefix):
            return rank, code
    return len(NEAREST_THE_MODEL), code
