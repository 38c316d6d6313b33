"""What does a document declare, and what do all documents?"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from lsprotocol import types as lsp

from forgeplan.diagnostics.span import Span
from forgeplan.dsl import syntax
from forgeplan.lsp.snapshot import Snapshot
from forgeplan.lsp.workspace import Workspace

MOST = 500
"""Symbols of a workspace that are told at once."""

_KIND = lsp.SymbolKind


def document_symbols(snapshot: Snapshot) -> list[lsp.DocumentSymbol]:
    """Declarations of the file with the fields, nodes and profiles inside of them."""
    return list(_symbols(snapshot.parsed.file.items, snapshot))


def workspace_symbols(query: str, workspace: Workspace) -> list[lsp.WorkspaceSymbol]:
    """Declarations of all files whose names have the letters of `query` in their order."""
    found: list[lsp.WorkspaceSymbol] = []
    for snapshot in workspace.documents():
        for symbol in document_symbols(snapshot):
            if _has_letters(symbol.name, query):
                place = lsp.Location(snapshot.uri, symbol.selection_range)
                found.append(lsp.WorkspaceSymbol(place, symbol.name, symbol.kind, container_name=snapshot.name))
            if len(found) >= MOST:
                return found
    return found


def _has_letters(name: str, query: str) -> bool:
    letters = iter(name.lower())
    return all(letter in letters for letter in query.lower())


def _symbols(items: Iterable[syntax.Item], snapshot: Snapshot) -> Iterator[lsp.DocumentSymbol]:
    for item in items:
        match item:
            case syntax.Plan():
                detail = f"extends {item.base.text}" if item.base else "partial plan" if item.partial else "plan"
                yield _one(item, item.name, _KIND.Class, detail, snapshot, item.body.items)
            case syntax.Profile():
                yield _one(item, item.name, _KIND.Namespace, "profile", snapshot, item.body.items)
            case syntax.NodeDecl():
                yield _one(item, item.name, _KIND.Event, item.kind.text, snapshot, item.body.items)
            case syntax.Sweep():
                yield _one(item, item.name, _KIND.Enum, f"sweep over {item.base.text}", snapshot, item.items)
            case syntax.Test():
                yield _one(item, item.title, _KIND.Method, f"test for {item.base.text}", snapshot)
            case syntax.Param():
                yield _one(item, item.name, _KIND.Variable, f"param {item.type.name.text}", snapshot)
            case syntax.Let():
                yield _one(item, item.name, _KIND.Constant, "let", snapshot)
            case syntax.Import():
                yield _one(item, item.name, _KIND.Module, "import", snapshot)
            case syntax.Assign():
                inner = item.value.items if isinstance(item.value, syntax.Record) else ()
                amended = item.value.record.items if isinstance(item.value, syntax.Amend) else inner
                kind = _KIND.Struct if amended else _KIND.Field
                yield _one(item, item.path, kind, _short(item.value, snapshot), snapshot, amended)
            case syntax.SweepAxis():
                yield _one(item, item.path, _KIND.EnumMember, _short(item.values, snapshot), snapshot)


def _one(
    item: syntax.Item,
    name: syntax.Name | syntax.Path | syntax.Text,
    kind: lsp.SymbolKind,
    detail: str,
    snapshot: Snapshot,
    inside: Iterable[syntax.Item] = (),
) -> lsp.DocumentSymbol:
    return lsp.DocumentSymbol(
        name=_text(name.span, snapshot).strip('"') or "…",
        kind=kind,
        range=snapshot.range(item.span.to(name.span)),
        selection_range=snapshot.range(name.span),
        detail=detail,
        children=list(_symbols(inside, snapshot)),
    )


def _short(value: syntax.Expr, snapshot: Snapshot) -> str:
    text = " ".join(_text(value.span, snapshot).split())
    return text if len(text) <= 40 else text[:39] + "…"


def _text(span: Span, snapshot: Snapshot) -> str:
    return snapshot.text[span.start : span.end]
