"""Does everything that the README, the guides and the pages of commands show happen as they show it?

A page is a story in one folder, which begins with the shipped plans and an empty `forge.toml`:

* a block `forge` compiles as it stands, with the diagnostics that its comments announce (see `harness.py`); a name
  behind the word (`forge hello.forge`) leaves it in the folder, for the commands below it;
* a block `console` holds commands behind `$ ` and what they print. `…` stands for any text; on a line of its own, for
  any lines.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from attrs import frozen

from tests.docs.harness import FILE, announced, reported, unmatched, whole
from tests.house.tree import ROOT

PAGES = (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")), *sorted((ROOT / "docs/commands").glob("*.md")))
SHIMS = {"forgeplan": "forgeplan", "torchrun": "torch.distributed.run", "pygmentize": "pygments"}
_BLOCK = re.compile(r"^```(forge|console)(?: +(\S+))?\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@frozen
class Command:
    line: str
    shown: str
    """What the page says it prints."""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with the shipped plans, where programs are those of this interpreter."""
    project, programs = tmp_path / "project", tmp_path / "programs"
    shutil.copytree(ROOT / "plans", project / "plans")
    (project / "forge.toml").touch()
    programs.mkdir()
    for name, module in SHIMS.items():
        shim = programs / name
        shim.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m {module} "$@"\n', encoding="utf-8")
        shim.chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    for name, value in {"COLUMNS": "80", "NO_COLOR": "1", "OMP_NUM_THREADS": "1"}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(project)
    return project


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_page_tells_what_happens(page: Path, folder: Path) -> None:
    status = 0
    for kind, name, text in _BLOCK.findall(page.read_text(encoding="utf-8")):
        if kind == "forge":
            _check_plan(text)
            if name:
                (folder / name).write_text(text, encoding="utf-8")
        else:
            for command in _commands(text):
                status = _check_command(command, status, folder)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_links_of_a_page_lead_to_files(page: Path) -> None:
    targets = re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text(encoding="utf-8"))
    assert [target for target in targets if "://" not in target and not (page.parent / target).exists()] == []


def _check_plan(text: str) -> None:
    files = {FILE: whole(text)}
    assert unmatched(announced(files), reported(files)) == [], text


def _check_command(command: Command, status: int, folder: Path) -> int:
    """Run a command of the page; `$?` in it is the status of the one before."""
    run = subprocess.run(
        ["bash", "-c", f"(exit {status}); {command.line}"],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        timeout=240,
    )
    printed = run.stdout.replace(str(folder), ".")
    assert _pattern(command.shown).fullmatch(printed), f"$ {command.line}\n{printed}"
    return run.returncode


def _commands(block: str) -> Iterator[Command]:
    for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
        line, _, shown = part.replace("\\\n", "").partition("\n")
        yield Command(line, shown)


def _pattern(shown: str) -> re.Pattern[str]:
    """`…` on a line of its own is any number of lines, inside a line any text; spaces at the ends do not count."""
    lines = [
        r"(?:.*\n)*?" if line.strip() == "…" else ".*".join(map(re.escape, line.rstrip().split("…"))) + r"[ ]*\n"
        for line in shown.rstrip("\n").splitlines()
    ]
    return re.compile("\n*" + "".join(lines) + "\n*" if lines else r"(?:.*\n)*")


def test_an_ellipsis_stands_for_any_lines_or_any_text_and_nothing_else_does() -> None:
    assert _pattern("a\n…\nb …s").fullmatch("a\nx\ny\nb 12 s\n")
    assert _pattern("a\n…\nb").fullmatch("a\nb\n")
    assert not _pattern("a\nb").fullmatch("a\nx\nb\n")
    assert not _pattern("loss 1.…").fullmatch("loss 2.5\n")
