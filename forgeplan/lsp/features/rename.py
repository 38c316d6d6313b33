"""Which edits give a name another spelling, everywhere, without changing what any plan means?"""

from __future__ import annotations

import re

from lsprotocol import types as lsp

from forgeplan.dsl.symbols import Index, Symbol, Target
from forgeplan.dsl.tokens import RESERVED
from forgeplan.dsl.vocabulary import schema_words
from forgeplan.lsp.names import Names
from forgeplan.lsp.snapshot import Snapshot
from forgeplan.lsp.workspace import Workspace

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class CannotRename(Exception):
    """The reason, for a person."""


def prepare_rename(snapshot: Snapshot, at: int, workspace: Workspace) -> lsp.PrepareRenamePlaceholder | None:
    """The name at a place, if it can have another spelling; None for words of the language and of the library."""
    one = snapshot.index.at(at)
    if one is None:
        return None
    found = Names(workspace).declaration(one.target, snapshot)
    if found is None or found[0].name.startswith("std:"):
        return None
    return lsp.PrepareRenamePlaceholder(snapshot.range(one.span), one.target.name)


def rename(snapshot: Snapshot, at: int, new: str, workspace: Workspace) -> lsp.WorkspaceEdit | None:
    """The edits of all files. Raises CannotRename where the new name would not do, or mean something else."""
    one = snapshot.index.at(at)
    if one is None:
        return None
    names = Names(workspace)
    found = names.declaration(one.target, snapshot)
    if found is None:
        raise CannotRename(f"`{one.target.name}` is not declared in a file that can be read")
    there, symbol = found
    if there.name.startswith("std:"):
        raise CannotRename(f"`{one.target.name}` belongs to the library `{there.name}`")
    _check_spelling(new, symbol)
    changes: dict[str, list[lsp.TextEdit]] = {}
    for document, span in names.occurrences(one.target, snapshot):
        _check_free(new, document.index, document.index.at(span.start), document.name, symbol)
        changes.setdefault(document.uri, []).append(lsp.TextEdit(document.range(span), new))
    return lsp.WorkspaceEdit(changes=changes)


def _check_spelling(new: str, symbol: Symbol) -> None:
    if not _NAME.fullmatch(new):
        raise CannotRename(f"`{new}` is no name: letters, digits and `_`, the first no digit")
    if new in RESERVED:
        raise CannotRename(f"`{new}` is a word of the language")
    meaning = schema_words().get(new)
    if meaning is not None and symbol.kind in ("let", "param", "import", "imported", "variable"):
        raise CannotRename(f"`{new}` means {meaning}")


def _check_free(new: str, index: Index, occurrence: object, file: str, symbol: Symbol) -> None:
    """The new name neither stands for something here already, nor would be taken for it."""
    target: Target | None = getattr(occurrence, "target", None)
    if target is None:
        return
    place = occurrence.span.start  # type: ignore[attr-defined]
    for other in index.visible(place):
        same_kind = (other.kind == "entry") == (symbol.kind == "entry")
        if other.target.name == new and same_kind and _one_space(other.target, target):
            raise CannotRename(f"{file} has a `{new}` already")
    inside = [one for one in index.occurrences if one.target.name == new and not one.target.owner]
    if target.owner.startswith("@") and inside:
        own = index.declared(target)
        if own is not None and any(own.scope.start <= one.span.start <= own.scope.end for one in inside):
            raise CannotRename(f"`{new}` is read in the same body, and would mean this")


def _one_space(a: Target, b: Target) -> bool:
    """Whether two names may not be alike: entries of one map, or names that are not of maps."""
    is_entry = [":" in one.owner for one in (a, b)]
    if any(is_entry):
        return all(is_entry) and a.owner.split(":")[0] == b.owner.split(":")[0]
    return True
