"""Does the worker come to rest: when the editor goes, and when an analysis fails?"""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path
from typing import Any

import pytest

from forgeplan.lsp import analyses
from forgeplan.lsp.analyses import Analyses
from forgeplan.lsp.workspace import Documents

pytestmark = pytest.mark.asyncio


class Counted(Analyses):
    """Counts the analyses that are begun."""

    num_begun = 0

    def _begin(self, uri: str) -> None:
        self.num_begun += 1
        super()._begin(uri)


async def test_nothing_is_begun_after_the_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The editor ends the server while a document is analysed that has changed meanwhile."""
    begun, go_on = threading.Event(), threading.Event()

    def slow(*_: Any) -> None:
        begun.set()
        go_on.wait(10)

    monkeypatch.setattr(analyses, "_analysed", slow)
    documents = Documents(folders=[tmp_path])
    worker = Counted(documents, lambda snapshot: None)
    uri = (tmp_path / "a.forge").as_uri()
    documents.put(uri, 1, "forge 1\n")
    worker.all_changed()
    while not begun.is_set():
        await asyncio.sleep(0.01)
    documents.put(uri, 2, "forge 1\n\n")
    worker.all_changed()
    asked = asyncio.ensure_future(worker.current(uri))
    await asyncio.sleep(0)
    worker.close()
    go_on.set()
    assert await asyncio.wait_for(asked, 1) is documents.snapshot(uri)
    await asyncio.sleep(0.2)
    assert worker.num_begun == 1


async def test_a_failure_is_not_tried_again_until_something_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    documents = Documents(folders=[tmp_path])
    worker = Counted(documents, lambda snapshot: None)
    uri = (tmp_path / "a.forge").as_uri()
    documents.put(uri, 1, "forge 1\n")

    def fails(self: Documents) -> dict[str, str]:
        raise OSError("the disk is gone")

    monkeypatch.setattr(Documents, "unsaved", fails)
    worker.all_changed()
    await asyncio.sleep(0.3)
    assert worker.num_begun == 1
    worker.all_changed()
    await asyncio.sleep(0.3)
    assert worker.num_begun == 2
    worker.close()
