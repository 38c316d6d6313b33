"""Does Neovim start the server of a project for its plan files, once, and run what a lens asks for?"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.editors.editor import ROOT, run_script

SERVER = Path(__file__).parent / "small_server.py"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project with a program of its own that notes what it is asked."""
    program = tmp_path / ".venv" / "bin" / "forgeplan"
    program.parent.mkdir(parents=True)
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{SERVER}" "{tmp_path}" "$@"\n', encoding="utf-8")
    program.chmod(0o755)
    (tmp_path / "forge.toml").touch()
    (tmp_path / "plans").mkdir()
    for name in ("a", "b"):
        (tmp_path / "plans" / f"{name}.forge").write_text("forge 1\n", encoding="utf-8")
    return tmp_path


def _noted(project: Path, method: str) -> list[dict[str, Any]]:
    lines = (project / "noted").read_text(encoding="utf-8").splitlines()
    return [message["params"] for message in map(json.loads, lines) if message["method"] == method]


def _waiting_for(method: str, times: int) -> str:
    return (
        f"call wait(10000, {{-> filereadable('noted') && "
        f"count(join(readfile('noted')), '\"method\": \"{method}\"') >= {times}}})"
    )


def test_one_server_serves_the_files_of_a_project(project: Path) -> None:
    script = ["lua require('forgeplan').setup()", "edit plans/a.forge", "edit plans/b.forge"]
    run_script("nvim", project, "\n".join([*script, _waiting_for("textDocument/didOpen", 2), "qall!"]))
    (started,) = _noted(project, "initialize")
    assert started["rootUri"] == project.as_uri()
    opened = [params["textDocument"] for params in _noted(project, "textDocument/didOpen")]
    assert [(document["uri"], document["languageId"]) for document in opened] == [
        ((project / "plans" / f"{name}.forge").as_uri(), "forge") for name in ("a", "b")
    ]


def test_files_that_are_open_already_are_served_too(project: Path) -> None:
    script = [
        "edit plans/a.forge",
        "lua require('forgeplan').setup()",
        _waiting_for("textDocument/didOpen", 1),
        "qall!",
    ]
    run_script("nvim", project, "\n".join(script))
    assert len(_noted(project, "textDocument/didOpen")) == 1


def test_a_lens_runs_its_command_in_a_terminal(project: Path) -> None:
    file = project / "plans" / "a.forge"
    command = f"{{ command = 'forgeplan.explain', arguments = {{ '{file.as_uri()}', 'small' }} }}"
    run_script(
        "nvim",
        project,
        "lua require('forgeplan').setup()\n"
        f"lua vim.lsp.commands['forgeplan.explain']({command})\n"
        "call wait(10000, {-> filereadable('words')})\nqall!",
    )
    assert (project / "words").read_text(encoding="utf-8") == f"explain {file} --plan small"


def test_a_program_that_is_not_there_is_told_once(project: Path) -> None:
    run_script(
        "nvim",
        project,
        "lua vim.notify = function(text) vim.fn.writefile({ text }, 'told', 'a') end\n"
        "lua require('forgeplan').setup({ path = 'no-such-program' })\nedit plans/a.forge\nedit plans/b.forge\nqall!",
    )
    assert (project / "told").read_text().splitlines() == [
        "forgeplan: there is no no-such-program; install it, or set `path`"
    ]


def test_the_help_has_tags_that_are_found(tmp_path: Path) -> None:
    run_script(
        "nvim",
        tmp_path,
        "let &runtimepath = tempname() . ',' . &runtimepath\ncall mkdir(split(&runtimepath, ',')[0] . '/doc', 'p')\n"
        "let from = globpath(&runtimepath, 'doc/forgeplan.txt', 0, 1)[0]\n"
        "call writefile(readfile(from), split(&runtimepath, ',')[0] . '/doc/forgeplan.txt')\n"
        "execute 'helptags' split(&runtimepath, ',')[0] . '/doc'\nhelp forgeplan-lsp\n"
        "call writefile([getline('.')], 'line')\nqall!",
    )
    assert "LANGUAGE SERVER IN NEOVIM" in (tmp_path / "line").read_text()


def test_the_real_server_underlines_a_mistake(tmp_path: Path) -> None:
    pytest.importorskip("pygls")
    plan = (ROOT / "plans" / "debug.forge").read_text(encoding="utf-8")
    (tmp_path / "a.forge").write_text(plan.replace("micro = 4", "mirco = 4"), encoding="utf-8")
    program = Path(sys.executable).with_name("forgeplan")
    run_script(
        "nvim",
        tmp_path,
        f"lua require('forgeplan').setup({{ path = '{program}' }})\nedit a.forge\n"
        "call wait(30000, {-> luaeval('#vim.diagnostic.get(0)') > 0})\n"
        "lua vim.fn.writefile(vim.tbl_map(function(one) return one.message end, vim.diagnostic.get(0)), 'found')\n"
        "qall!",
    )
    assert "mirco" in (tmp_path / "found").read_text(encoding="utf-8")
