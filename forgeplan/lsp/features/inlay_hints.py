"""Which computed values are shown beside what they follow from?"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from lsprotocol import types as lsp

from forgeplan.compiler.wording import bytes_text, plan_text
from forgeplan.dsl import syntax
from forgeplan.lsp.places import job_of
from forgeplan.lsp.snapshot import Snapshot
from forgeplan.spec.job import Job


def _value(path: str, text: str) -> Callable[[Job], str | None]:
    def hint(job: Job) -> str | None:
        value = _at(path, job)
        return text.format(_shown(value)) if value is not None else None

    return hint


def _degrees(job: Job) -> str | None:
    axes = ("pp", "dp_replicate", "dp_shard", "cp", "tp")
    found = {axis: _at(f"mesh.{axis}", job) for axis in axes}
    parts = [f"{axis} {degree}" for axis, degree in found.items() if isinstance(degree, int) and degree > 1]
    return " · ".join(parts) or None


def _states(job: Job) -> str | None:
    states = job.derived.get("memory.states")
    return f"{bytes_text(states)} of state on the fullest rank" if states is not None else None


HINTS: dict[str, tuple[Callable[[Job], str | None], ...]] = {
    "model": (_value("model.params", "{} parameters"), _value("model.active_params", "{} active")),
    "batch": (
        _value("batch.accumulation", "accumulation {}"),
        _value("mesh.data_ranks", "{} data ranks"),
    ),
    "mesh": (_degrees,),
    "cluster": (_value("cluster.devices", "{} devices"), _degrees),
    "budget": (_value("budget.steps", "{} steps"),),
    "optimizer": (_states,),
}
"""By the field of a plan: what is shown behind its value. A hint whose value is not known is left out."""


def inlay_hints(snapshot: Snapshot, start: int, end: int) -> list[lsp.InlayHint]:
    """Hints of the plans between two offsets; none while the analysis is of another text."""
    if not snapshot.is_current:
        return []
    return list(_hints(snapshot, start, end))


def _hints(snapshot: Snapshot, start: int, end: int) -> Iterator[lsp.InlayHint]:
    for plan in snapshot.parsed.file.items:
        job = job_of(snapshot, plan.name.text) if isinstance(plan, syntax.Plan) else None
        if job is None or not isinstance(plan, syntax.Plan):
            continue
        written = {item.path.text for item in plan.body.items if isinstance(item, syntax.Assign)}
        for item in plan.body.items:
            if isinstance(item, syntax.Assign) and item.span.start <= end and start <= item.span.end:
                yield from _behind(item, job, snapshot, written)
                yield from _autos(item, "", job, snapshot)


def _behind(item: syntax.Assign, job: Job, snapshot: Snapshot, written: set[str]) -> Iterator[lsp.InlayHint]:
    name = item.path.text
    hints = HINTS.get(name, ())
    if name == "cluster" and "mesh" in written:
        hints = hints[:1]
    texts = [text for hint in hints if (text := hint(job))]
    if texts:
        yield lsp.InlayHint(
            snapshot.positions.position(_end_of_opening(item, snapshot)), " · ".join(texts), padding_left=True
        )


def _autos(item: syntax.Assign, record: str, job: Job, snapshot: Snapshot) -> Iterator[lsp.InlayHint]:
    """What each `auto` of a field or record came to, where the compiler computes it."""
    path, value = f"{record}{item.path.text}", item.value
    came_to = _at(path, job) if isinstance(value, syntax.NameRef) and value.name == "auto" else None
    if came_to not in (None, "auto"):
        place = snapshot.positions.position(value.span.end)
        yield lsp.InlayHint(place, f"= {_shown(came_to)}", padding_left=True)
    body = value.record if isinstance(value, syntax.Amend) else value
    for inner in body.items if isinstance(body, syntax.Record) else ():
        if isinstance(inner, syntax.Assign):
            yield from _autos(inner, f"{path}.", job, snapshot)


def _end_of_opening(item: syntax.Assign, snapshot: Snapshot) -> int:
    """The end of the value, or of the line of its opening bracket where it goes on below."""
    line_end = snapshot.text.find("\n", item.value.span.start)
    return item.value.span.end if line_end < 0 else min(item.value.span.end, line_end)


def _at(path: str, job: Job) -> Any:
    if path in job.derived:
        return job.derived[path]
    leaf = job.leaves.get(path)
    return leaf.value if leaf is not None else None


def _shown(value: Any) -> str:
    return f"{value:,}" if isinstance(value, int) else plan_text(value)
