"""What does a proof of a plan leave for those who run it, and what do they read of it?

The file is described by `docs/schemas/certificate.schema.json`. Needs no torch.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from forgeplan.plan.execution_plan import ExecutionPlan
from forgeplan.runtime.files import json_bytes, read_json_object, replace

FORMAT_VERSION = 1
PROVEN, DEVIATES, FAILED = "proven", "deviates", "failed"
"""Verdicts: all trials are the same as one process; one differs; a rank of one raised or died."""
DECISIVE = ("forgeplan-torch", "torch")
"""Packages whose version decides what was proven."""


def write(path: Path, certificate: Mapping[str, Any]) -> None:
    """Put a certificate in the place of an earlier one. Raises OSError where it cannot be written."""
    path.parent.mkdir(parents=True, exist_ok=True)
    replace(path, json_bytes(certificate))


def of_plan(path: Path, plan: ExecutionPlan) -> dict[str, Any] | None:
    """The certificate of exactly this plan, or None where there is none, or it is of another plan or damaged."""
    found = read_json_object(path)
    return found if found is not None and _meaning(found) == plan.meaning and "verdict" in found else None


def sentence(path: Path, plan: ExecutionPlan, command: str) -> str:
    """For the header of a run: what is proven of its plan. `command` is the one that proves it."""
    found = of_plan(path, plan)
    if found is None:
        is_there = read_json_object(path) is not None
        return f"{'the certificate is of another plan' if is_there else 'not proven'}: {command}"
    day = str(found.get("time"))[:10]
    if found["verdict"] != PROVEN:
        return f"{found['verdict']}, by the proof of {day}: {found.get('summary')}"
    largest = found.get("largest_deviation")
    value = largest.get("value") if isinstance(largest, dict) else None
    deviation = f", largest deviation {value:.1e}" if isinstance(value, int | float) else ""
    return f"proven on {day}{deviation}{_with_other_versions(found)}"


def _meaning(certificate: Mapping[str, Any]) -> Any:
    plan = certificate.get("plan")
    return plan.get("meaning") if isinstance(plan, dict) else None


def _with_other_versions(certificate: Mapping[str, Any]) -> str:
    """`, with torch 2.12.0, and this is 2.13.0`; nothing where they are the same."""
    found = certificate.get("versions")
    then = found if isinstance(found, dict) else {}
    changed = []
    for package in DECISIVE:
        with suppress(PackageNotFoundError):
            if then.get(package) != (now := version(package)):
                changed.append(f", with {package} {then.get(package)}, and this is {now}")
    return "".join(changed)
