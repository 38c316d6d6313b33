"""In which forms are messages printed: for a person, for a person in a hurry, for a program?

The form for programs is described by `docs/schemas/diagnostics.schema.json`.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from forgeplan.diagnostics.cells import clean
from forgeplan.diagnostics.diagnostic import Diagnostic, Fix, Label, Severity
from forgeplan.diagnostics.render import render
from forgeplan.diagnostics.source import Sources
from forgeplan.diagnostics.span import Span

JSON_FORMAT_VERSION = 1


def render_all(
    diagnostics: Iterable[Diagnostic],
    sources: Sources,
    *,
    format: str = "full",
    width: int = 80,
    color: bool = False,
) -> str:
    """All messages, sorted by file, place and code, without a line break at the end.

    `format` is one of `FORMATS`; `width` and `color` concern people only. No message gives an empty text, in JSON an
    empty list. Raises ValueError for an unknown format.
    """
    if format not in FORMATS:
        raise ValueError(f"{format!r} is no format of diagnostics; these are: {', '.join(FORMATS)}")
    ordered = sorted(diagnostics, key=Diagnostic.sort_key)
    return FORMATS[format](ordered, sources, width, color)


def summary(diagnostics: Iterable[Diagnostic]) -> str:
    """`2 errors, 1 warning`; empty if there is nothing."""
    counts = Counter(diagnostic.severity for diagnostic in diagnostics)
    found = ((counts[severity], severity.value) for severity in Severity if counts[severity])
    return ", ".join(f"{number} {word}{'s' * (number > 1)}" for number, word in found)


def full(diagnostics: Sequence[Diagnostic], sources: Sources, width: int, color: bool) -> str:
    return "\n\n".join(render(diagnostic, sources, width, color) for diagnostic in diagnostics)


def concise(diagnostics: Sequence[Diagnostic], sources: Sources, width: int, color: bool) -> str:
    """One line for each message: `plan.forge:4:36: error[FP0303]: …`."""
    return "\n".join(_concise(diagnostic, sources) for diagnostic in diagnostics)


def as_json(diagnostics: Sequence[Diagnostic], sources: Sources, width: int, color: bool) -> str:
    """Lines and columns are 1-based, offsets 0-based; all count characters, and ends are open."""
    counts = Counter(diagnostic.severity.value for diagnostic in diagnostics)
    found = {
        "format_version": JSON_FORMAT_VERSION,
        "errors": counts["error"],
        "warnings": counts["warning"],
        "diagnostics": [_entry(diagnostic, sources) for diagnostic in diagnostics],
    }
    return json.dumps(found, indent=2, ensure_ascii=False).encode("utf-8", "backslashreplace").decode("utf-8")


FORMATS: dict[str, Callable[[Sequence[Diagnostic], Sources, int, bool], str]] = {
    "full": full,
    "concise": concise,
    "json": as_json,
}


def _concise(diagnostic: Diagnostic, sources: Sources) -> str:
    place = f"{_where(diagnostic.span, sources)}: " if diagnostic.span else ""
    view = f" (in `{diagnostic.view}`)" if diagnostic.view else ""
    text = f"{place}{diagnostic.severity.value}[{diagnostic.code}]: {diagnostic.message}{view}"
    return clean(text).replace("\n", " ")


def _where(span: Span, sources: Sources) -> str:
    return sources.place(span) if sources.get(span.file) else span.file


def _entry(diagnostic: Diagnostic, sources: Sources) -> dict[str, Any]:
    return {
        "code": diagnostic.code,
        "severity": diagnostic.severity.value,
        "message": diagnostic.message,
        "view": diagnostic.view or None,
        "labels": [_label(label, sources) for label in diagnostic.labels],
        "help": list(diagnostic.help),
        "notes": list(diagnostic.notes),
        "fixes": [_fix(fix, sources) for fix in diagnostic.fixes],
    }


def _label(label: Label, sources: Sources) -> dict[str, Any]:
    return {**_range(label.span, sources), "text": label.text}


def _fix(fix: Fix, sources: Sources) -> dict[str, Any]:
    edits = [{**_range(edit.span, sources), "replacement": edit.replacement} for edit in fix.edits]
    return {"title": fix.title, "safety": fix.safety.value, "edits": edits}


def _range(span: Span, sources: Sources) -> dict[str, Any]:
    source = sources.get(span.file)
    if source is None:
        return {"file": span.file, "start": None, "end": None}
    places = {}
    for name, offset in (("start", span.start), ("end", span.end)):
        line, column = source.position(offset)
        places[name] = {"offset": offset, "line": line, "column": column}
    return {"file": span.file, **places}
