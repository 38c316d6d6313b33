"""Which options have the transforms that `apply` leaves out, and why are they in the program, or not?"""

from __future__ import annotations

from typing import Any

from forgeplan.plan.operations import OPERATIONS
from forgeplan.spec.job import Job
from forgeplan.spec.provenance import Leaf
from forgeplan.spec.registry import components


def with_inserted(job: Job) -> dict[str, Leaf]:
    """The leaves of a job, and behind what `apply` names those of the transforms that the compiler inserts."""
    found = dict(job.leaves)
    for name in OPERATIONS:
        if _is_inserted(name, job):
            found |= job.bare(name)[0]
    blocks = list(dict.fromkeys(path.partition(".")[0] for path in found))
    return dict(sorted(found.items(), key=lambda item: blocks.index(item[0].partition(".")[0])))


def why_inserted(path: str, job: Job) -> str:
    """Who asked for the transform of this option, and how to give it another value. Empty for other paths."""
    name = _transform(path)
    if not _is_inserted(name, job):
        return ""
    asked = "is in every program" if OPERATIONS[name].always else f"is in the program as {_degree(name, job)}"
    return f"`{name}` {asked}; `apply = [{name} {{ … }}]` gives it options"


def why_absent(path: str, job: Job) -> str:
    """What would bring the transform of this option into the program. Empty for other paths."""
    name = _transform(path)
    if name not in components("operation") or f"apply.{name}" in job.leaves or _is_inserted(name, job):
        return ""
    return f"`{name}` is not in the program, as {_degree(name, job) or '`apply` does not name it'}"


def _transform(path: str) -> str:
    """`tp`, for `apply.tp` and all below it; empty for other paths."""
    head, *names = path.split(".")
    return names[0] if head == "apply" and names else ""


def _is_inserted(name: str, job: Job) -> bool:
    if name not in components("operation") or f"apply.{name}" in job.leaves:
        return False
    degree: Any = job.leaves[f"mesh.{name}"].value if f"mesh.{name}" in job.leaves else 1
    return OPERATIONS[name].always or degree > 1


def _degree(name: str, job: Job) -> str:
    """`mesh.tp = 8`; empty for a transform without an axis."""
    leaf = job.leaves.get(f"mesh.{name}")
    return "" if leaf is None else f"mesh.{name} = {leaf.value:,}"
