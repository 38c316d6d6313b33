"""What are messages in SARIF 2.1.0, which code hosts show as alerts and follow from commit to commit?"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from hashlib import sha256
from typing import Any
from urllib.parse import quote

from forgeplan.diagnostics.diagnostic import Diagnostic, Fix, Label, Severity
from forgeplan.diagnostics.forms.as_json import dumped
from forgeplan.diagnostics.pages import page
from forgeplan.diagnostics.pages import render as page_text
from forgeplan.diagnostics.report import Report, is_file
from forgeplan.diagnostics.span import Span
from forgeplan.resources import resource

SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
BASE = "PROJECT"
FINGERPRINT = "forgeplanPlace/v1"

_LEVELS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.NOTE: "note"}
_COMMENT = re.compile(r"#[^\n]*")


def sarif(report: Report) -> str:
    """A log with one run. Columns count characters; names of files are relative to the project."""
    codes = list(dict.fromkeys(found.code for found in report.diagnostics))
    levels = {found.code: _LEVELS[found.severity] for found in reversed(report.diagnostics)}
    prints = _fingerprints(report)
    run: dict[str, Any] = {
        "tool": {
            "driver": {
                "name": "forgeplan",
                **_version(),
                "rules": [_rule(code, levels[code]) for code in codes],
            }
        },
        "columnKind": "unicodeCodePoints",
        "originalUriBaseIds": {BASE: {"description": {"text": "the folder of forge.toml, else the working directory"}}},
        "invocations": [{"executionSuccessful": True}],
        "artifacts": [
            {"location": _artifact(file, report), "roles": ["analysisTarget"], "sourceLanguage": "forge"}
            for file in report.files
        ],
        "results": [
            _result(found, codes.index(found.code), print, report)
            for found, print in zip(report.diagnostics, prints, strict=True)
        ],
    }
    return dumped({"$schema": SCHEMA, "version": "2.1.0", "runs": [run]})


def _version() -> dict[str, str]:
    """A checkout that is not installed has none."""
    from importlib.metadata import PackageNotFoundError, version  # which takes longer to load than all of this

    try:
        return {"version": version("forgeplan")}
    except PackageNotFoundError:
        return {}


def _rule(code: str, level: str) -> dict[str, Any]:
    """A code as its page explains it."""
    known = page(code)
    rule: dict[str, Any] = {"id": code, "defaultConfiguration": {"level": level}}
    if known is None:
        return rule
    return {
        **rule,
        "shortDescription": {"text": known.rule},
        "fullDescription": {"text": known.reason},
        "help": {
            "text": page_text(known),
            "markdown": resource(f"docs/diagnostics/{code}.md").read_text(encoding="utf-8"),
        },
    }


def _result(found: Diagnostic, index: int, fingerprint: str, report: Report) -> dict[str, Any]:
    lines = [found.message, *(f"help: {line}" for line in found.help), *(f"note: {line}" for line in found.notes)]
    first, others = found.labels[:1], found.labels[1:]
    result: dict[str, Any] = {
        "ruleId": found.code,
        "ruleIndex": index,
        "level": _LEVELS[found.severity],
        "message": {"text": "\n".join(lines)},
        "locations": [_location(label, report) for label in first],
        "partialFingerprints": {FINGERPRINT: fingerprint},
    }
    if others:
        result["relatedLocations"] = [{"id": id, **_location(label, report)} for id, label in enumerate(others, 1)]
    fixes = [_fix(fix, report) for fix in found.fixes if all(is_file(edit.span.file) for edit in fix.edits)]
    if fixes:
        result["fixes"] = fixes
    if found.view:
        result["properties"] = {"view": found.view}
    return result


def _location(label: Label, report: Report) -> dict[str, Any]:
    """A place in a file, or the name of what is no file; what is to be said there is its message."""
    file = label.span.file
    if file.startswith("<"):
        place: dict[str, Any] = {"logicalLocations": [{"name": file.strip("<>")}]}
    else:
        region = _region(label.span, report)
        shown = {"region": region} if region else {}
        place = {"physicalLocation": {"artifactLocation": _artifact(file, report), **shown}}
    return {**place, "message": {"text": label.text}} if label.text else place


def _artifact(file: str, report: Report) -> dict[str, str]:
    if not is_file(file):
        return {"uri": file}
    name = report.name(file)
    if name.startswith("/"):
        return {"uri": "file://" + _uri(name)}
    return {"uri": _uri(name), "uriBaseId": BASE}


def _uri(name: str) -> str:
    return quote(name.encode("utf-8", "surrogateescape"), safe="/")


def _region(span: Span, report: Report) -> dict[str, int] | None:
    position = report.position(span)
    if position is None:
        return None
    names = ("startLine", "startColumn", "endLine", "endColumn")
    offsets = {"charOffset": span.start, "charLength": span.end - span.start}
    return {**dict(zip(names, position, strict=True)), **offsets}


def _fix(fix: Fix, report: Report) -> dict[str, Any]:
    changes: dict[str, list[dict[str, Any]]] = {}
    for edit in fix.edits:
        replacement = {"deletedRegion": _region(edit.span, report), "insertedContent": {"text": edit.replacement}}
        changes.setdefault(edit.span.file, []).append(replacement)
    return {
        "description": {"text": fix.title},
        "artifactChanges": [
            {"artifactLocation": _artifact(file, report), "replacements": replacements}
            for file, replacements in changes.items()
        ],
    }


def _fingerprints(report: Report) -> Sequence[str]:
    """What stays the same for a message while the lines around it change or it moves with its block.

    Its code, the text at its place without spacing and comments, and what is said there, but neither lines nor the
    message, which may quote values from elsewhere; of equal ones in a file, the number in order.
    """
    return tuple(_numbered(report))


def _numbered(report: Report) -> Iterator[str]:
    seen: Counter[tuple[str, ...]] = Counter()
    for found in report.diagnostics:
        label = found.labels[0] if found.labels else None
        source = report.sources.get(label.span.file) if label else None
        text = source.text[label.span.start : label.span.end] if source and label else ""
        key = (found.code, " ".join(_COMMENT.sub("", text).split()), label.text if label else "")
        in_file = (label.span.file if label else "", *key)
        seen[in_file] += 1
        whole = "\0".join((*key, str(seen[in_file])))
        yield sha256(whole.encode("utf-8", "surrogatepass")).hexdigest()[:32]
