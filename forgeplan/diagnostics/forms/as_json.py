"""What are messages in forgeplan's own JSON, which `docs/schemas/diagnostics.schema.json` describes?"""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

from forgeplan.diagnostics.diagnostic import Diagnostic, Fix, Label
from forgeplan.diagnostics.report import Report
from forgeplan.diagnostics.source import Sources
from forgeplan.diagnostics.span import Span

JSON_FORMAT_VERSION = 1


def as_json(report: Report) -> str:
    """Lines and columns are 1-based, offsets 0-based; all count characters, and ends are open."""
    counts = Counter(diagnostic.severity.value for diagnostic in report.diagnostics)
    return dumped(
        {
            "format_version": JSON_FORMAT_VERSION,
            "files": list(report.checked),
            "errors": counts["error"],
            "warnings": counts["warning"],
            "diagnostics": [_entry(diagnostic, report.sources) for diagnostic in report.diagnostics],
        }
    )


def dumped(document: dict[str, Any]) -> str:
    """JSON text that can be written as UTF-8, whatever the strings hold."""
    return json.dumps(document, indent=2, ensure_ascii=False).encode("utf-8", "backslashreplace").decode("utf-8")


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
