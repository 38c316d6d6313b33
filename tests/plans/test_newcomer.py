"""Does `make run` do for a newcomer what the README says, in a fresh clone and a fresh environment?"""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path

import pytest

from tests.house.tree import ROOT

MINUTES = 20 * 60
"""Patience for a busy machine; quiet, it is under six with the installation."""


@pytest.mark.slow
@pytest.mark.timeout(MINUTES + 120)
def test_make_run_trains_the_quickstart_in_a_fresh_clone(tmp_path: Path) -> None:
    clone = tmp_path / "forgeplan"
    subprocess.run(["git", "clone", "--quiet", str(ROOT), str(clone)], check=True)
    hidden = ("VIRTUAL_ENV", "PYTHONPATH", "PYTEST_CURRENT_TEST", "MAKEFLAGS", "MFLAGS", "MAKELEVEL")
    environment = {name: value for name, value in os.environ.items() if name not in hidden}
    made = subprocess.run(
        ["make", "run"], cwd=clone, env=environment, capture_output=True, text=True, timeout=MINUTES, check=False
    )
    assert made.returncode == 0, made.stderr[-4000:]
    run = clone / "runs" / "quickstart"
    steps = json.loads((run / "plan.json").read_text(encoding="utf-8"))["steps"]
    for name, path in (
        ("plan", "plan.json"),
        ("metrics", "metrics.jsonl"),
        ("checkpoint", f"checkpoints/step-{steps}"),
    ):
        assert (run / path).exists()
        assert re.search(rf"^{name} +\S+{path}$", made.stdout, re.MULTILINE)
    (final,) = [e for e in _evaluations(run / "metrics.jsonl") if e["step"] == steps]
    assert final["loss"] <= 0.75 * final["unigram_entropy"]
    prompt, answer = made.stdout.split("seed 0):\n")[1].split("»")
    assert prompt.strip()
    assert len(answer.split()) >= 5


def _evaluations(metrics: Path) -> list[dict[str, float]]:
    lines = (json.loads(line) for line in metrics.read_text(encoding="utf-8").splitlines())
    return [line for line in lines if line["kind"] == "eval"]
