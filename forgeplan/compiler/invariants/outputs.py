"""Does a plan write only where it may?"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from forgeplan.compiler.facts import Facts
from forgeplan.compiler.invariants.registry import Finding, invariant
from forgeplan.diagnostics.codes import code
from forgeplan.diagnostics.diagnostic import Label

PATHS = ("checkpoint.path",)
"""Every field that names a place to write to."""

FP0803 = code("FP0803", "two runs do not write to one place")
"""Needs all jobs of a file; reported by `compiler/together.py`."""


@invariant("FP0802", "an output path lies inside the project, or in a folder that `forge.toml` opens for output")
def outputs_stay_inside(facts: Facts) -> Iterator[Finding]:
    for path in PATHS:
        fact = facts.get(path)
        if fact is None or fact.value is None or (fact.origin and fact.origin.layer == "command line"):
            continue
        project = facts.project.resolve()
        place = (project / fact.value).resolve()
        roots = [project, *(root.resolve() for root in facts.output_roots)]
        if any(place.is_relative_to(root) for root in roots):
            continue
        yield outputs_stay_inside.at(
            f"{path} = {fact.text} leads outside the project",
            Label(fact.origin.span, path) if fact.written and fact.origin else None,
            help=(
                f'allow it in forge.toml: [outputs] roots = ["{_opening(place)}"]',
                f"or on the command line, where a path is its own permission: --set {path}={fact.value}",
            ),
            notes=(f"it is {place}, and the project is {project}",),
        )


def _opening(place: Path) -> Path:
    return place.parent if place.parent != place else place
