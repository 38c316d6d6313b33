"""How does an editor see the diagnostics of a document?"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

from lsprotocol import types as lsp

from forgeplan.diagnostics.diagnostic import Diagnostic, Label, Severity
from forgeplan.diagnostics.span import Span
from forgeplan.dsl import syntax
from forgeplan.lsp.features.links import imported_uri
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
    place = span_in(found, snapshot, workspace)
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


def span_in(found: Diagnostic, snapshot: Snapshot, workspace: Workspace) -> Span:
    """The place of a diagnostic in the document: its own, else that of the import that leads to it, else the start."""
    own = next((label.span for label in found.labels if label.span.file == snapshot.name), None)
    if own is not None:
        return own
    leading = _import_of(found.span.file, snapshot, workspace) if found.span is not None else None
    return leading or Span(snapshot.name, 0, min(1, len(snapshot.text)))


def _import_of(name: str, snapshot: Snapshot, workspace: Workspace) -> Span | None:
    """The import of the document by which a file is read, the shortest way where there are several."""
    seen = {snapshot.name}
    reached: deque[tuple[Span | None, Snapshot]] = deque([(None, snapshot)])
    while reached:
        leading, there = reached.popleft()
        for item in there.parsed.file.items:
            if isinstance(item, syntax.Import | syntax.FromImport):
                uri = imported_uri(item, there, workspace)
                read = workspace.snapshot(uri) if uri is not None else None
                if read is not None and read.name not in seen:
                    way = leading or item.source.span
                    if read.name == name:
                        return way
                    seen.add(read.name)
                    reached.append((way, read))
    return None


def _related(
    labels: list[Label], found: Diagnostic, workspace: Workspace
) -> Iterator[lsp.DiagnosticRelatedInformation]:
    for label in labels:
        there = workspace.snapshot_of_name(label.span.file) if not label.span.file.startswith("<") else None
        if there is not None:
            place = lsp.Location(there.uri, there.range(label.span))
            yield lsp.DiagnosticRelatedInformation(place, label.text or found.message)
