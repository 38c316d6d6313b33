"""Where is a name declared?"""

from __future__ import annotations

from lsprotocol import types as lsp

from forgeplan.dsl import syntax
from forgeplan.lsp.features.links import imported_uri
from forgeplan.lsp.names import Names
from forgeplan.lsp.snapshot import Snapshot
from forgeplan.lsp.workspace import Workspace


def definition(snapshot: Snapshot, at: int, workspace: Workspace) -> lsp.Location | None:
    """The declaration of the name at a place, or the file that an import names."""
    one = snapshot.index.at(at)
    if one is not None:
        found = Names(workspace).declaration(one.target, snapshot)
        return None if found is None else lsp.Location(found[0].uri, found[0].range(found[1].span))
    for item in snapshot.parsed.file.items:
        if isinstance(item, syntax.Import | syntax.FromImport) and _touches(item.source, at):
            uri = imported_uri(item, snapshot, workspace)
            return None if uri is None else lsp.Location(uri, lsp.Range(lsp.Position(0, 0), lsp.Position(0, 0)))
    return None


def _touches(node: syntax.Node, at: int) -> bool:
    return node.span.start <= at <= node.span.end
