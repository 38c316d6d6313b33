"""Which edits give a name another spelling, everywhere, without changing what any plan means?"""

from __future__ import annotations

import re

from lsprotocol import types as lsp

from forgeplan.dsl.symbols import Occurrence, Symbol, Target
from forgeplan.dsl.tokens import RESERVED
from forgeplan.dsl.vocabulary import schema_words
from forgeplan.lsp.names import Names
from forgeplan.lsp.snapshot import Snapshot
from forgeplan.lsp.workspace import Workspace

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_BINDING = frozenset(("let", "param", "import", "imported", "variable"))
"""Kinds of symbols that values can read by their bare name, before any field or entry."""
_OF_PLAN = ":"
"""In the owner of a name that belongs to a plan; see `Target`."""


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
    same_map = names.occurrences(Target(new, one.target.module, one.target.owner), snapshot)
    if _OF_PLAN in one.target.owner and any(same_map):
        raise CannotRename(f"`{new}` is there already, in this plan or one that it shares entries with")
    changes: dict[str, list[lsp.TextEdit]] = {}
    for document, span in names.occurrences(one.target, snapshot):
        occurrence = document.index.at(span.start)
        if occurrence is not None:
            _check_free(new, document, occurrence)
        changes.setdefault(document.uri, []).append(lsp.TextEdit(document.range(span), new))
    return lsp.WorkspaceEdit(changes=changes)


def _check_spelling(new: str, symbol: Symbol) -> None:
    if not _NAME.fullmatch(new):
        raise CannotRename(f"`{new}` is no name: letters, digits and `_`, the first no digit")
    if new in RESERVED:
        raise CannotRename(f"`{new}` is a word of the language")
    meaning = schema_words().get(new)
    if meaning is not None and symbol.kind in _BINDING:
        raise CannotRename(f"`{new}` means {meaning}")


def _check_free(new: str, document: Snapshot, occurrence: Occurrence) -> None:
    """At one place: the new name stands for nothing else there, and takes nothing that others read."""
    index, is_entry = document.index, _OF_PLAN in occurrence.target.owner
    is_read = any(span == occurrence.span for _, span in index.free)
    for other in index.visible(occurrence.span.start):
        is_taken = other.kind in _BINDING if is_entry else _OF_PLAN not in other.target.owner
        if other.target.name == new and is_taken and (is_read or not is_entry):
            raise CannotRename(f"{document.name} has a `{new}` already")
    own = index.declared(occurrence.target)
    if own is None or own.kind not in _BINDING:
        return
    taken = [*index.free, *((one.target.name, one.span) for one in index.occurrences if not one.target.owner)]
    if any(name == new and own.scope.start <= span.start <= own.scope.end for name, span in taken):
        raise CannotRename(f"`{new}` is read in {document.name}, and would mean this")
