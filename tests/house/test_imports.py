"""Do the commands that train nothing start without what only training needs?"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PLAN = ROOT / "plans" / "quickstart.forge"
CONFIGURATION = ROOT / "tests" / "importer" / "configs" / "torchtitan" / "llama3_8b_float8.toml"
FOR_TRAINING = {"torch", "torchao", "datasets", "transformers", "tokenizers", "safetensors", "tensorboard", "numpy"}
COMMANDS = {
    "lint": ["lint", str(PLAN)],
    "compile": ["compile", str(PLAN), "-o", "-"],
    "explain": ["explain", str(PLAN)],
    "explain a value": ["explain", str(PLAN), "optimizer.lr"],
    "explain a code": ["explain", "FP0501"],
    "fmt": ["fmt", "--check", str(PLAN)],
    "graph": ["graph", str(PLAN)],
    "schema": ["schema"],
    "hash": ["hash", str(PLAN)],
    "diff": ["diff", str(PLAN), str(PLAN)],
    "import": ["import", str(CONFIGURATION), "-o", "mine.forge"],
    "test": ["test", str(PLAN)],
    "new": ["new", "mine.forge"],
    "dry run": ["run", str(PLAN), "--dry-run"],
    "help": ["-h"],
}
WITHOUT_A_GRAPH = {"schema", "lint", "explain a value", "explain a code", "fmt", "test", "new", "help"}


def _imported(arguments: list[str], folder: Path) -> set[str]:
    """Top-level packages that a command imports."""
    process = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "forgeplan", *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
    )
    assert process.returncode == 0, process.stderr[-2000:]
    return set(re.findall(r"^import time: .*\| +([A-Za-z_]\w*)", process.stderr, re.MULTILINE))


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_imports_no_package_that_it_does_not_need(name: str, tmp_path: Path) -> None:
    imported = _imported(COMMANDS[name], tmp_path)
    assert "forgeplan" in imported
    assert not imported & FOR_TRAINING
    assert name not in WITHOUT_A_GRAPH or not imported & {"networkx", "rich"}
