"""What can be done about the diagnostics at a place? Their fixes, one by one, and all safe ones of the document."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from lsprotocol import types as lsp

from forgeplan.diagnostics.codes import registered
from forgeplan.diagnostics.diagnostic import Diagnostic, Edit, Fix, Safety
from forgeplan.diagnostics.edits import apply
from forgeplan.diagnostics.span import Span
from forgeplan.dsl import syntax
from forgeplan.lints.allows import UNNEEDED
from forgeplan.lsp.problems import found_in, problem, span_in
from forgeplan.lsp.snapshot import Snapshot
from forgeplan.lsp.workspace import Workspace

FIX_ALL = "source.fixAll.forgeplan"
KINDS = (lsp.CodeActionKind.QuickFix, FIX_ALL)


def code_actions(
    snapshot: Snapshot, start: int, end: int, workspace: Workspace, only: Iterable[str] | None = None
) -> list[lsp.CodeAction]:
    """Fixes of the diagnostics that touch a range of offsets; `only` are kinds of actions that are asked for."""
    wanted = [kind for kind in KINDS if _asked_for(kind, only)]
    actions: list[lsp.CodeAction] = []
    if lsp.CodeActionKind.QuickFix in wanted:
        for found in found_in(snapshot):
            place = span_in(found, snapshot, workspace)
            if place.start <= end and start <= place.end:
                actions += _fixes(found, snapshot, workspace)
                actions += _silenced(found, place, snapshot, workspace)
    if FIX_ALL in wanted:
        actions += _all_safe(snapshot, workspace)
    return actions


def _asked_for(kind: str, only: Iterable[str] | None) -> bool:
    return only is None or any(kind == asked or kind.startswith(f"{asked}.") for asked in only)


def _fixes(found: Diagnostic, snapshot: Snapshot, workspace: Workspace) -> Iterator[lsp.CodeAction]:
    for fix in found.fixes:
        change = _change(fix.edits, workspace)
        if change is not None:
            yield lsp.CodeAction(
                title=fix.title,
                kind=lsp.CodeActionKind.QuickFix,
                diagnostics=[problem(found, snapshot, workspace)],
                is_preferred=fix.safety is Safety.SAFE,
                edit=change,
            )


def _silenced(found: Diagnostic, place: Span, snapshot: Snapshot, workspace: Workspace) -> Iterator[lsp.CodeAction]:
    """Allow a lint in the smallest statement around it."""
    known = registered().get(found.code)
    if known is None or known.level is None or found.code == UNNEEDED.id:
        return
    above = [start for item in _items(snapshot.parsed.file) if (start := _line_of(item, place, snapshot)) is not None]
    if above:
        line = snapshot.text[above[-1] :]
        indent = line[: len(line) - len(line.lstrip(" \t"))]
        edit = Edit(Span(snapshot.name, above[-1], above[-1]), f"{indent}# forge: allow {found.code}\n")
        yield lsp.CodeAction(
            title=f"allow {found.code} here",
            kind=lsp.CodeActionKind.QuickFix,
            diagnostics=[problem(found, snapshot, workspace)],
            edit=_change([edit], workspace),
        )


def _line_of(item: syntax.Item, place: Span, snapshot: Snapshot) -> int | None:
    """Where the line of a statement around a place begins, if nothing but the statement begins on it."""
    if not item.span.start <= place.start <= item.span.end:
        return None
    start = snapshot.text.rfind("\n", 0, item.span.start) + 1
    return None if snapshot.text[start : item.span.start].strip() else start


def _items(node: syntax.Node) -> Iterator[syntax.Item]:
    """All statements, outer ones first."""
    for child in syntax.children(node):
        if isinstance(child, syntax.Item):
            yield child
        yield from _items(child)


def _all_safe(snapshot: Snapshot, workspace: Workspace) -> Iterator[lsp.CodeAction]:
    safe = [fix for found in found_in(snapshot) for fix in found.fixes if fix.safety is Safety.SAFE]
    own = [fix for fix in safe if all(edit.span.file == snapshot.name for edit in fix.edits)]
    done = apply(own, {snapshot.name: snapshot.text}).done
    change = _change(dict.fromkeys(edit for fix in done for edit in fix.edits), workspace)
    if done and change is not None:
        yield lsp.CodeAction(title=_title(done), kind=FIX_ALL, edit=change)


def _title(done: tuple[Fix, ...]) -> str:
    return f"apply {len(done)} safe fixes" if len(done) > 1 else done[0].title


def _change(edits: Iterable[Edit], workspace: Workspace) -> lsp.WorkspaceEdit | None:
    """The edits as the editor makes them; None where a file cannot be changed."""
    changes: dict[str, list[lsp.TextEdit]] = {}
    for edit in edits:
        there = workspace.snapshot_of_name(edit.span.file)
        if there is None or edit.span.file.startswith("std:"):
            return None
        changes.setdefault(there.uri, []).append(lsp.TextEdit(there.range(edit.span), edit.replacement))
    return lsp.WorkspaceEdit(changes=changes)
