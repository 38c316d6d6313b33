"""Documents and folders that no sensible editor has."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from forgeplan.analysis import analyse
from forgeplan.lsp.workspace import Documents


@pytest.mark.parametrize("uri", ["file:///a%00b.forge", "untitled:%00", "http://[x"])
def test_an_address_that_is_no_path_still_has_a_name(tmp_path: Path, uri: str) -> None:
    documents = Documents(folders=[tmp_path])
    assert documents.snapshot(uri) is None
    assert documents.put(uri, 1, "forge 1\n").name
    assert documents.unsaved() == {str(documents.path_of(uri)): "forge 1\n"}


def test_a_pipe_in_the_folder_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "a.forge")
    (tmp_path / "b.forge").write_text("forge 1\n")
    names: list[str] = []
    looking = threading.Thread(
        target=lambda: names.extend(one.uri for one in Documents(folders=[tmp_path]).documents()), daemon=True
    )
    looking.start()
    looking.join(5)
    assert names == [(tmp_path / "b.forge").resolve().as_uri()]


def test_an_import_of_a_pipe_is_told_and_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.forge")
    plan = tmp_path / "a.forge"
    plan.write_text('forge 1\n\nfrom "./pipe.forge" import x\n')
    told: list[str] = []
    reading = threading.Thread(
        target=lambda: told.extend(one.message for one in analyse(plan).diagnostics), daemon=True
    )
    reading.start()
    reading.join(10)
    assert any("pipe.forge is no file of text" in one for one in told)
