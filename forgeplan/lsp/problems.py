"""How does an editor see the diagnostics of a document?"""

from __future__ import annotations

from collections.abc import Iterator

from lsprotocol import types as lsp

from forgeplan.diagnostics.diagnostic import Diagnostic, Label, Severity
from forgeplan.diagnostics.span import Span
from forgeplan.dsl import syntax
from forgeplan.lsp.snapshot import Snapshot
from forgeplan.lsp.workspace import Workspace

SOURCE = "forgeplan"
UNNECESSARY = frozenset(("unused-name", "unused-source", "unneeded-allow", "restates-value", "setting-without-effect"))
"""Lints about text that changes nothing: editors show it faded."""
_SEVERITY = {
    Severity.ERROR: lsp.DiagnosticSeverity.Error,
    Severity.WARNING: lsp.DiagnosticSeverity.Warning,
    Severity.NOTE: lsp.DiagnosticSeverity.Information,
}


def problems(snapshot: Snapshot, workspace: Workspace) -> list[lsp.Diagnostic]:
    """Everything that was found in the version that was analysed; nothing before the first analysis."""
    return [problem(found, snapshot, workspace) for found in found_in(snapshot)]


def found_in(snapshot: Snapshot) -> tuple[Diagnostic, ...]:
    return snapshot.analysis.diagnostics if snapshot.analysis is not None and snapshot.is_current else ()


def problem(found: Diagnostic, snapshot: Snapshot, workspace: Workspace) -> lsp.Diagnostic:
    """One diagnostic; further places, in other files too, are related information.

    One that shows in an imported file is shown where this document brings that file in.
    """
    place = span_in(found, snapshot)
    further = [label for label in found.labels if label.span != place]
    lines = [found.message, *(f"help: {line}" for line in found.help), *(f"note: {line}" for line in found.notes)]
    return lsp.Diagnostic(
        range=snapshot.range(place),
        message="\n".join(lines),
        severity=_SEVERITY[found.severity],
        code=found.code,
        source=f"{SOURCE} ({found.view})" if found.view else SOURCE,
        related_information=list(_related(further, found, workspace)),
        tags=[lsp.DiagnosticTag.Unnecessary] if found.code in UNNECESSARY else None,
    )


def span_in(found: Diagnostic, snapshot: Snapshot) -> Span:
    """The place of a diagnostic in the document: its own, else that of the import that leads to it, else the start."""
    own = next((label.span for label in found.labels if label.span.file == snapshot.name), None)
    if own is not None:
        return own
    imports = [item for item in snapshot.parsed.file.items if isinstance(item, syntax.Import | syntax.FromImport)]
    stem = _stem(found.span.file) if found.span is not None else ""
    for item in imports:
        written = "".join(part for part in item.source.parts if isinstance(part, str))
        if _stem(written) == stem:
            return item.source.span
    return imports[0].source.span if imports and stem else Span(snapshot.name, 0, min(1, len(snapshot.text)))


def _stem(path: str) -> str:
    return path.rpartition("/")[2].rpartition(":")[2].removesuffix(".forge")


def _related(
    labels: list[Label], found: Diagnostic, workspace: Workspace
) -> Iterator[lsp.DiagnosticRelatedInformation]:
    for label in labels:
        there = workspace.snapshot_of_name(label.span.file) if not label.span.file.startswith("<") else None
        if there is not None:
            place = lsp.Location(there.uri, there.range(label.span))
            yield lsp.DiagnosticRelatedInformation(place, label.text or found.message)
