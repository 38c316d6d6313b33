"""Where does a name stand, in all files?"""

from __future__ import annotations

from lsprotocol import types as lsp

from forgeplan.lsp.names import Names
from forgeplan.lsp.snapshot import Snapshot
from forgeplan.lsp.workspace import Workspace


def references(
    snapshot: Snapshot, at: int, workspace: Workspace, include_declaration: bool = True
) -> list[lsp.Location]:
    """Every place of the name at an offset, by file and offset."""
    one = snapshot.index.at(at)
    if one is None:
        return []
    names = Names(workspace)
    found = names.declaration(one.target, snapshot)
    declared = (found[0].name, found[1].span) if found is not None else None
    places = [
        (there, span)
        for there, span in names.occurrences(one.target, snapshot)
        if include_declaration or (there.name, span) != declared
    ]
    return [lsp.Location(there.uri, there.range(span)) for there, span in sorted(places, key=lambda p: p[1])]


def highlights(snapshot: Snapshot, at: int, workspace: Workspace) -> list[lsp.DocumentHighlight]:
    """The places of a name in the document itself."""
    one = snapshot.index.at(at)
    if one is None:
        return []
    places = Names(workspace).occurrences(one.target, snapshot)
    return [lsp.DocumentHighlight(snapshot.range(span)) for there, span in places if there is snapshot]
