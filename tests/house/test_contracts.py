"""Do the folders keep to their arrows, and does the tree say nothing of the machine it was written on?"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.house.tree import ROOT, files

# Put together, so that this file does not find itself.
# `me` is the person of examples.
_FOLDERS = (r"home/(?!me\b)", "root/", "work/", "Users/", "mnt/", "opt/")
_ABSOLUTE = re.compile(r"(?<![\w./~-])/(?:" + "|".join(_FOLDERS) + r")\w")
_REGISTRY = re.compile(
    "|".join(
        name + r"\." + end for name, end in (("pypi", "org"), ("pythonhosted", "org"), ("download.pytorch", "org"))
    )
)


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        return ""


def test_every_import_contract_holds() -> None:
    checked = subprocess.run(
        [sys.executable, "-c", "from importlinter.cli import lint_imports_command; lint_imports_command()"],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert checked.returncode == 0, checked.stdout
    assert " 0 broken" in checked.stdout


def test_the_program_is_what_runs_and_nothing_in_the_runtime_reads_apply() -> None:
    readers = []
    for path in files("forgeplan/runtime/*.py"):
        for node in ast.walk(ast.parse(_text(path))):
            attribute = isinstance(node, ast.Attribute) and node.attr == "apply" and _is_job(node.value)
            named = isinstance(node, ast.Constant) and node.value == "apply"
            if attribute or named:
                readers.append(f"{path.relative_to(ROOT)}:{node.lineno}")
    assert readers == []


def _is_job(node: ast.expr) -> bool:
    """Whether an expression is called a job or a plan: `job`, `plan.job`, `self._plan.job` …"""
    name = node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""
    return name.strip("_") in ("job", "plan")


def test_only_the_runtime_imports_torch() -> None:
    importers = []
    for path in files("forgeplan/*.py"):
        parts = path.relative_to(ROOT).parts
        if parts[1] != "runtime" and re.search(r"^\s*(import|from) torch\b", _text(path), re.MULTILINE):
            importers.append("/".join(parts))
    assert importers == []


@pytest.mark.parametrize(("pattern", "what"), [(_ABSOLUTE, "path of a machine"), (_REGISTRY, "registry host")])
def test_no_file_names_a_machine(pattern: re.Pattern[str], what: str) -> None:
    found = []
    for path in files():
        for number, line in enumerate(_text(path).splitlines(), start=1):
            if pattern.search(line):
                found.append(f"{path.relative_to(ROOT)}:{number}: {what}: {line.strip()}")
    assert found == []


def test_no_file_leaves_work_for_later() -> None:
    later = re.compile(
        r"\b(" + "|".join(("TO" + "DO", "FIX" + "ME", "XX" + "X")) + r")\b|raise Not" + "ImplementedError"
    )
    found = []
    for path in files("*.py", "*.forge", "*.lark", "Makefile"):
        for number, line in enumerate(_text(path).splitlines(), start=1):
            if later.search(line):
                found.append(f"{path.relative_to(ROOT)}:{number}: {line.strip()}")
    assert found == []
