"""How are names followed through the files of a workspace?"""

from __future__ import annotations

from collections.abc import Iterator

from attrs import frozen

from forgeplan.diagnostics.span import Span
from forgeplan.dsl.imports import real
from forgeplan.dsl.symbols import Index, Symbol, Target, declaration, home
from forgeplan.lsp.snapshot import Snapshot
from forgeplan.lsp.workspace import Workspace


@frozen(eq=False)
class Names:
    """The index of each document, with imports read as the editor holds them."""

    workspace: Workspace

    def load(self, importer: str, written: str) -> Index | None:
        """The index of the file that `importer` imports by a path."""
        found = self.imported(importer, written)
        return found.index if found is not None else None

    def imported(self, importer: str, written: str) -> Snapshot | None:
        if written.startswith("std:"):
            return self.workspace.snapshot_of_name(written)
        folder = self.workspace.path_of(self.workspace.uri_of(importer)).parent
        return self.workspace.snapshot(real(folder / written).as_uri())

    def declaration(self, target: Target, snapshot: Snapshot) -> tuple[Snapshot, Symbol] | None:
        found = declaration(target, snapshot.index, self.load)
        there = self.workspace.snapshot_of_name(found[0].file) if found is not None else None
        return (there, found[1]) if there is not None and found is not None else None

    def identity(self, target: Target, snapshot: Snapshot) -> tuple[str, Target] | None:
        """File and target where a name begins: two names with one identity are one name."""
        found = home(target, snapshot.index, self.load)
        return (found[0].file, found[1]) if found is not None else None

    def occurrences(self, target: Target, snapshot: Snapshot) -> Iterator[tuple[Snapshot, Span]]:
        """Every place in the workspace where a name stands, declarations too."""
        wanted = self.identity(target, snapshot)
        if wanted is None:
            return
        documents = {one.name: one for one in self.workspace.documents()}
        home_file = self.workspace.snapshot_of_name(wanted[0])
        if home_file is not None:
            documents.setdefault(home_file.name, home_file)
        for one in documents.values():
            if target.name not in one.text:
                continue
            known: dict[Target, bool] = {}
            for occurrence in one.index.occurrences:
                found = occurrence.target
                if found.name == target.name:
                    if found not in known:
                        known[found] = self.identity(found, one) == wanted
                    if known[found]:
                        yield one, occurrence.span
