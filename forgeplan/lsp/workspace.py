"""Which documents does an editor have open, and what are the files around them called?

A file has three names: its URI in the editor, its real path, and the name that spans and messages use (relative to the
working directory, or `std:models` for a module of the library).
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Protocol
from urllib.parse import unquote, urlsplit

from attrs import define, field
from pygls import uris

from forgeplan.analysis import Analysis
from forgeplan.dsl.imports import real, shown
from forgeplan.dsl.library import STD
from forgeplan.lsp.snapshot import Snapshot

MAX_FILES = 2_000
"""Files of a workspace that are looked at; folders beyond are left out."""
MAX_BYTES = 1 << 20
SKIPPED = frozenset(("node_modules", "runs", "build", "dist", "site-packages", "__pycache__"))


class Workspace(Protocol):
    """What features that cross files ask for."""

    def documents(self) -> Iterable[Snapshot]:
        """Open documents, then the other plan files of the workspace's folders."""

    def snapshot(self, uri: str) -> Snapshot | None:
        """The open document, or the file on disk; None where there is neither."""

    def snapshot_of_name(self, name: str) -> Snapshot | None:
        """The same by the name that spans use."""

    def uri_of(self, name: str) -> str:
        """The URI of the file that spans call `name`."""

    def path_of(self, uri: str) -> Path:
        """The real path of a document; for one that was never saved, where it would lie."""


@define(eq=False)
class Documents:
    """The workspace of a running server."""

    encoding: str = "utf-16"
    folders: list[Path] = field(factory=list)
    _open: dict[str, Snapshot] = field(factory=dict)
    _closed: dict[Path, tuple[tuple[int, int], Snapshot]] = field(factory=dict)
    """Files on disk, with time of change and size when they were read."""

    # what the editor says ---------------------------------------------------------------------------------------------

    def put(self, uri: str, version: int | None, text: str) -> Snapshot:
        """A document was opened or changed."""
        earlier = self._open.get(uri)
        analysis = earlier.analysis if earlier is not None else None
        new = Snapshot(uri, version, self.name_of(uri), text, self.encoding, analysis)
        self._open[uri] = new
        return new

    def close(self, uri: str) -> None:
        self._open.pop(uri, None)

    def open_documents(self) -> list[Snapshot]:
        return list(self._open.values())

    def is_open(self, uri: str) -> bool:
        return uri in self._open

    def took(self, uri: str, version: int | None, analysis: Analysis) -> Snapshot | None:
        """Keep the analysis of a version; None if the document is closed or has a newer version by now."""
        now = self._open.get(uri)
        if now is None or now.version != version:
            return None
        now.analysis = analysis
        return now

    def unsaved(self) -> dict[str, str]:
        """The text of every open document, by real path: what imports read instead of the files."""
        return {str(self.path_of(one.uri)): one.text for one in self._open.values()}

    # names ------------------------------------------------------------------------------------------------------------

    def path_of(self, uri: str) -> Path:
        """The real path of a document; for one that was never saved, where it would lie."""
        try:
            parts = urlsplit(uri)
            found = uris.to_fs_path(uri) if parts.scheme == "file" else None
            inside = unquote(parts.path)
        except ValueError:  # brackets of an address that hold none
            found, inside = None, ""
        if found and "\0" not in found:
            return real(Path(found))
        folder = self.folders[0] if self.folders else Path.cwd()
        name = os.path.basename(inside).replace("\0", "") or "untitled"
        return real(folder) / (name if name.endswith(".forge") else f"{name}.forge")

    def name_of(self, uri: str) -> str:
        path = self.path_of(uri)
        return f"std:{path.stem}" if path.parent == STD else shown(path)

    def uri_of(self, name: str) -> str:
        path = real(STD / f"{name.removeprefix('std:')}.forge" if name.startswith("std:") else Path(name))
        for one in self._open.values():
            if self.path_of(one.uri) == path:
                return one.uri
        return path.as_uri()

    # reading ----------------------------------------------------------------------------------------------------------

    def snapshot(self, uri: str) -> Snapshot | None:
        return self._open.get(uri) or self._from_disk(self.path_of(uri))

    def snapshot_of_name(self, name: str) -> Snapshot | None:
        return self.snapshot(self.uri_of(name))

    def documents(self) -> Iterator[Snapshot]:
        yield from self.open_documents()
        seen = {self.path_of(one.uri) for one in self._open.values()}
        for path in self._files():
            if path not in seen and (found := self._from_disk(path)) is not None:
                seen.add(path)
                yield found

    def _from_disk(self, path: Path) -> Snapshot | None:
        try:
            status = path.stat()
            stamp = (status.st_mtime_ns, status.st_size)
            kept = self._closed.get(path)
            if kept is not None and kept[0] == stamp and kept[1].encoding == self.encoding:
                return kept[1]
            if status.st_size > MAX_BYTES or not stat.S_ISREG(status.st_mode):  # a pipe would be waited for
                return None
            text = path.read_bytes().decode("utf-8")
        except (OSError, UnicodeDecodeError):
            return None
        uri = path.as_uri()
        found = Snapshot(uri, None, self.name_of(uri), text, self.encoding)
        if len(self._closed) >= MAX_FILES:
            self._closed.clear()
        self._closed[path] = (stamp, found)
        return found

    def _files(self) -> Iterator[Path]:
        """Plan files below the folders, hidden folders and outputs left out."""
        number = 0
        for folder in self.folders:
            for root, inside, files in os.walk(folder):
                inside[:] = sorted(d for d in inside if not d.startswith(".") and d not in SKIPPED)
                for file in sorted(files):
                    if file.endswith(".forge"):
                        yield real(Path(root) / file)
                    number += 1
                if number > 50 * MAX_FILES:
                    return
