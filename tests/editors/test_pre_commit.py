"""Do the hooks do what pre-commit makes of them: run `entry` with the files that match, fail on a code or a change?"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.editors.texts import ROOT

HOOKS: dict[str, dict[str, Any]] = {
    hook["id"]: hook for hook in yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8"))
}
FORMATTED = (ROOT / "plans" / "debug.forge").read_text(encoding="utf-8")
UNFORMATTED = FORMATTED.replace("cluster = cpu_host", "cluster=cpu_host")
FAULTY = FORMATTED.replace("micro = 4", "mirco = 4")


def _passes(hook: dict[str, Any], folder: Path, **texts: str) -> bool:
    """Whether a commit with these files goes through."""
    names = [name.replace("__", ".") for name in texts]
    for name, text in zip(names, texts.values(), strict=True):
        (folder / name).write_text(text, encoding="utf-8")
    matching = [name for name in names if re.search(hook["files"], name)]
    done = subprocess.run(
        [*shlex.split(hook["entry"]), *hook.get("args", []), *matching],
        cwd=folder,
        env={**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"},
        capture_output=True,
    )
    after = [(folder / name).read_text(encoding="utf-8") for name in names]
    return done.returncode == 0 and after == list(texts.values())


@pytest.mark.parametrize("name", HOOKS)
def test_good_plans_pass_and_other_files_are_left_alone(name: str, tmp_path: Path) -> None:
    assert _passes(HOOKS[name], tmp_path, a__forge=FORMATTED, b__forge=FORMATTED, notes__txt="forge { ")


def test_a_plan_in_another_form_is_rewritten_and_passes_the_next_time(tmp_path: Path) -> None:
    assert not _passes(HOOKS["forge-fmt"], tmp_path, a__forge=UNFORMATTED)
    assert (tmp_path / "a.forge").read_text(encoding="utf-8") == FORMATTED


def test_a_plan_with_a_mistake_is_stopped_by_lint_alone(tmp_path: Path) -> None:
    assert not _passes(HOOKS["forge-lint"], tmp_path, good__forge=FORMATTED, bad__forge=FAULTY)
    assert _passes(HOOKS["forge-fmt"], tmp_path, bad__forge=FAULTY)


def test_every_hook_has_what_pre_commit_asks_for() -> None:
    assert set(HOOKS) == {"forge-fmt", "forge-lint"}
    assert all({"id", "name", "entry", "language", "files", "description"} <= set(hook) for hook in HOOKS.values())
