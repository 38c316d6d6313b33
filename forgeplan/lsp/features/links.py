"""Which words of a document lead to another file?"""

from __future__ import annotations

from collections.abc import Iterator

from lsprotocol import types as lsp

from forgeplan.dsl import syntax
from forgeplan.dsl.imports import real
from forgeplan.dsl.library import STD
from forgeplan.lsp.snapshot import Snapshot
from forgeplan.lsp.workspace import Workspace


def document_links(snapshot: Snapshot, workspace: Workspace) -> list[lsp.DocumentLink]:
    """The path of every import whose file exists; modules of the library lead to the shipped file."""
    return list(_links(snapshot, workspace))


def _links(snapshot: Snapshot, workspace: Workspace) -> Iterator[lsp.DocumentLink]:
    for item in snapshot.parsed.file.items:
        if isinstance(item, syntax.Import | syntax.FromImport):
            uri = imported_uri(item, snapshot, workspace)
            if uri is not None:
                yield lsp.DocumentLink(snapshot.range(item.source.span), target=uri)


def imported_uri(item: syntax.Import | syntax.FromImport, snapshot: Snapshot, workspace: Workspace) -> str | None:
    """The URI of the file that a statement imports; None where there is none."""
    if any(not isinstance(part, str) for part in item.source.parts):
        return None
    written = "".join(part for part in item.source.parts if isinstance(part, str))
    if written.startswith("std:"):
        exists = (STD / f"{written.removeprefix('std:')}.forge").is_file()
        return workspace.uri_of(written) if exists else None
    path = real(workspace.path_of(snapshot.uri).parent / written)
    return workspace.uri_of(str(path)) if workspace.snapshot(path.as_uri()) is not None else None
