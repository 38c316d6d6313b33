"""A real editor without a screen: Neovim or Vim with the files of `grammar/vim`, told what to do by a script."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
RUNTIME = ROOT / "grammar" / "vim"


def run_script(program: str, folder: Path, script: str, *, path: str = "") -> None:
    """Run a Vim script in `nvim` or `vim`, in a folder, with `path` before that of programs; it ends the editor."""
    found = shutil.which(program)
    if found is None:
        pytest.skip(f"{program} is not installed")
    file = folder / "script.vim"
    file.write_text(f"set nomore\nfiletype plugin indent on\nsyntax on\n{script}\n", encoding="utf-8")
    options = ["--headless", "--clean"] if program == "nvim" else ["-Nu", "NONE", "-es", "-i", "NONE", "--not-a-term"]
    options += ["--cmd", f"set runtimepath^={RUNTIME}"]
    environment = {**os.environ, "PATH": os.pathsep.join(filter(None, (path, os.environ["PATH"]))), "TERM": "dumb"}
    done = subprocess.run(
        [found, *options, "-S", str(file)],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        stdin=subprocess.DEVNULL,
    )
    assert done.returncode == 0, done.stdout + done.stderr
