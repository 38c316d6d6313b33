"""Where are Node and the packages that `make vscode` installs? A test that needs them is skipped where they are not."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MODULES = ROOT / "build" / "vscode" / "node_modules"


def node() -> str:
    found = shutil.which("node")
    if found is None:
        pytest.skip("node is not installed")
    return found


def modules(*names: str) -> Path:
    """The folder of installed packages, if it has those that are named."""
    missing = [name for name in names if not (MODULES / name).is_dir()]
    if missing:
        pytest.skip(f"`make vscode` has not installed {', '.join(missing)}")
    return MODULES
