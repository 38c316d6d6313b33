"""In which folder, and with which files, are commands tested?"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from forgeplan.cli.main import main
from tests.cli.commands import FAULTY, PLAN, Said

Give = Callable[..., Said]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory with `small.forge`, `faulty.forge` and `two.forge`."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.delenv("FORGEPLAN_TRACEBACK", raising=False)
    (tmp_path / "small.forge").write_text(PLAN)
    (tmp_path / "faulty.forge").write_text(FAULTY)
    (tmp_path / "two.forge").write_text(PLAN + "\nplan second extends small {\n  seed = 3\n}\n")
    return tmp_path


@pytest.fixture
def give(folder: Path, capsys: pytest.CaptureFixture[str]) -> Give:
    """Give a command in this process."""

    def give(*arguments: str) -> Said:
        exit_code = main(arguments)
        captured = capsys.readouterr()
        return Said(exit_code, captured.out, captured.err)

    return give
