"""Does the VS Code extension start the server and run the commands, and does its package hold what it names?"""

from __future__ import annotations

import json
import os
import re
import subprocess
import tomllib
import zipfile
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from tests.editors.node import node
from tests.editors.texts import ROOT, TEXTS

FOLDER = ROOT / "grammar" / "vscode"
PACKAGE = json.loads((FOLDER / "package.json").read_text(encoding="utf-8"))
CONFIGURATION = json.loads((FOLDER / "language-configuration.json").read_text(encoding="utf-8"))
VERSION = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
STUB = ROOT / "tests" / "editors" / "vscode_stub.js"
VSIX = ROOT / "build" / f"forgeplan-{VERSION}.vsix"


def _played(tmp_path: Path, **environment: str) -> dict[str, Any]:
    plan = tmp_path / "plans" / "my plan.forge"
    done = subprocess.run(
        [node(), str(STUB), str(FOLDER / "extension.js"), str(tmp_path), str(plan)],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_the_server_of_the_workspaces_environment_is_started_and_stopped(tmp_path: Path) -> None:
    program = tmp_path / ".venv" / "bin" / "forgeplan"
    program.parent.mkdir(parents=True)
    program.touch()
    found = _played(tmp_path)
    assert [server["server"] for server in found["servers"]] == [{"command": str(program), "args": ["lsp"]}] * 2
    assert {selector["language"] for selector in found["servers"][0]["options"]["documentSelector"]} == {"forge"}
    assert found["servers"][0]["features"] == ["textDocument/hover", "static"]  # its commands are the extension's
    assert found["stopped"] == 2


def test_without_an_environment_the_one_on_the_path_is_started(tmp_path: Path) -> None:
    assert _played(tmp_path)["servers"][0]["server"]["command"] == "forgeplan"


def test_commands_run_in_the_folder_of_the_workspace_on_a_saved_file(tmp_path: Path) -> None:
    found = _played(tmp_path)
    assert set(found["commands"]) == {command["command"] for command in PACKAGE["contributes"]["commands"]}
    assert [(task["program"], task["words"], task["options"]) for task in found["tasks"]] == [
        ("forgeplan", ["run", "plans/my plan.forge", "--plan", "small"], {"cwd": str(tmp_path)}),
        ("forgeplan", ["compile", "plans/my plan.forge"], {"cwd": str(tmp_path)}),
    ]
    assert found["saved"] == 2
    assert found["errors"] == ["There is no plan file to explain: save it first."]


def test_a_server_that_does_not_start_says_what_to_do(tmp_path: Path) -> None:
    message, command = _played(tmp_path, NO_SERVER="1")["errors"]
    assert "spawn forgeplan ENOENT" in message
    assert "pip install" in message
    assert command == "workbench.action.openSettings forgeplan.path"


@pytest.mark.parametrize(
    ("given", "program"),
    [
        ({"setting": "${workspaceFolder}/bin/f"}, "/w/bin/f"),
        ({"setting": "/elsewhere/f"}, "/elsewhere/f"),
        ({}, "/w/.venv/bin/forgeplan"),
        ({"isTrusted": False}, "forgeplan"),
        ({"folders": []}, "forgeplan"),
    ],
)
def test_which_program_is_started(given: dict[str, Any], program: str) -> None:
    known = {"setting": "", "folders": ["/w"], "isTrusted": True, "isWindows": False, **given}
    script = (
        f"const {{ findProgram }} = require({json.dumps(str(FOLDER / 'program.js'))});"
        f"console.log(findProgram({{ ...{json.dumps(known)}, exists: (path) => path.startsWith('/w/.venv') }}))"
    )
    done = subprocess.run([node(), "-e", script], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.strip() == program


def test_the_version_is_that_of_forgeplan() -> None:
    assert PACKAGE["version"] == VERSION


def test_every_file_that_is_named_is_there_or_made() -> None:
    contributes = PACKAGE["contributes"]
    (language,) = contributes["languages"]
    named = [language["configuration"], contributes["grammars"][0]["path"], contributes["snippets"][0]["path"]]
    for name in named:
        file = FOLDER / name
        file = file if file.exists() else ROOT / "grammar" / name
        assert json.loads(file.read_text(encoding="utf-8"))
    assert {language["id"], contributes["grammars"][0]["language"], contributes["snippets"][0]["language"]} == {"forge"}
    assert language["extensions"] == [".forge"]
    grammar = json.loads((ROOT / "grammar" / "forge.tmLanguage.json").read_text(encoding="utf-8"))
    assert grammar["scopeName"] == contributes["grammars"][0]["scopeName"]


def _pattern(name: str) -> re.Pattern[str]:
    return re.compile(CONFIGURATION["indentationRules"][name])


@pytest.mark.parametrize("text", [text for name, text in TEXTS.items() if name.endswith(".forge")])
def test_a_line_is_indented_where_brackets_stay_open_and_outdented_where_they_close(text: str) -> None:
    lines = [line for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#")]
    steps = [_indent(after) - _indent(before) for before, after in pairwise(lines)]
    opens = [bool(_pattern("increaseIndentPattern").search(line)) for line in lines[:-1]]
    closes = [bool(_pattern("decreaseIndentPattern").search(line)) for line in lines[1:]]
    assert steps == [2 * opened - 2 * closed for opened, closed in zip(opens, closes, strict=True)]


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


@pytest.mark.parametrize(
    ("before", "after", "text"),
    [
        ("  ## Doc", "", "## "),
        ("  ##", "rest", "## "),
        ("# plain", "rest", "# "),
        ("# plain", "", None),
        ("##", "", None),
    ],
)
def test_enter_in_a_comment_goes_on_with_it(before: str, after: str, text: str | None) -> None:
    rules = (
        rule["action"]["appendText"]
        for rule in CONFIGURATION["onEnterRules"]
        if re.search(rule["beforeText"], before)
        and re.search(rule.get("afterText", ""), after)
        and "appendText" in rule["action"]
    )
    assert next(rules, None) == text


def test_every_setting_that_is_restricted_or_read_is_declared() -> None:
    declared = set(PACKAGE["contributes"]["configuration"]["properties"])
    assert set(PACKAGE["capabilities"]["untrustedWorkspaces"]["restrictedConfigurations"]) <= declared
    read = re.findall(r'getConfiguration\("(\w+)"\)\.get\("(\w+)"\)', (FOLDER / "extension.js").read_text())
    assert read
    assert {".".join(names) for names in read} <= declared


def test_the_built_package_holds_what_it_names_and_nothing_else() -> None:
    if not VSIX.exists():
        pytest.skip("`make vscode` has not been run")
    with zipfile.ZipFile(VSIX) as packed:
        names = {name.removeprefix("extension/").lower() for name in packed.namelist() if name.startswith("extension/")}
        inside = json.loads(packed.read("extension/package.json"))
        bundle = packed.read("extension/dist/extension.js").decode()
        licences = packed.read("extension/THIRD-PARTY.txt").decode()
    contributes = inside["contributes"]
    named = [inside["main"], contributes["languages"][0]["configuration"]]
    named += [entry["path"] for kind in ("grammars", "snippets") for entry in contributes[kind]]
    expected = {name.removeprefix("./").lower() for name in named}
    assert names == {*expected, "package.json", "readme.md", "license.txt", "third-party.txt"}
    required = set(re.findall(r'require\("([^"]+)"\)', bundle))
    assert {name for name in required if name.startswith("vscode")} == {"vscode"}
    assert "vscode-languageclient 11" in licences
