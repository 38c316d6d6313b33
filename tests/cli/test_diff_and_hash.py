"""Do `diff` and `hash` read whatever holds a plan, and say in their exit code what they found?"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Give


@pytest.fixture
def run(give: Give, folder: Path) -> Path:
    """A run directory with a checkpoint, of an older plan than the run's."""
    step = folder / "runs/small/checkpoints/step-2"
    step.mkdir(parents=True)
    assert give("compile", "small.forge", "--set", "seed=7", "-o", str(step / "plan.json")).exit_code == 0
    assert give("compile", "small.forge", "-o", "runs/small/plan.json").exit_code == 0
    return folder / "runs/small"


def test_sides_are_files_plans_profiles_runs_and_checkpoints(give: Give, run: Path) -> None:
    for b, expected in {
        "small.forge": 0,
        "small.forge:small": 0,
        "two.forge:small": 0,
        "runs/small": 0,
        "runs/small/plan.json": 0,
        "small.forge@short": 10,
        "two.forge:second": 10,
        "two.forge:second@short": 10,
        "runs/small/checkpoints/step-2": 10,
    }.items():
        said = give("diff", "small.forge", b)
        assert (said.exit_code, said.err) == (expected, ""), b
    assert give("diff", "runs/small/checkpoints/step-2", "runs/small").out.endswith("resume: no, a new run: seed\n")


def test_a_file_that_has_the_very_name_is_meant(give: Give, folder: Path) -> None:
    (folder / "small.forge:small").write_text((folder / "faulty.forge").read_text())
    assert give("diff", "small.forge", "small.forge:small").exit_code == 1


@pytest.mark.parametrize(
    ("b", "exit_code", "words"),
    [
        ("faulty.forge", 1, "FP0501"),
        ("two.forge", 2, "two.forge has several plans: small, second"),
        ("two.forge:third", 2, "third"),
        ("missing.json", 2, "there is no file missing.json"),
        ("runs", 2, "runs is no run directory and no checkpoint: it has no plan.json\n  help: name one of small"),
    ],
)
def test_a_side_that_has_no_plan_says_why(b: str, exit_code: int, words: str, give: Give, run: Path) -> None:
    said = give("diff", "small.forge", b)
    assert said.exit_code == exit_code
    assert words in said.err


def test_an_altered_plan_is_refused(give: Give, run: Path) -> None:
    plan = run / "plan.json"
    plan.write_text(plan.read_text().replace('"seed": 0', '"seed": 1'))
    for arguments in (("diff", "small.forge", "runs/small"), ("hash", "runs/small")):
        said = give(*arguments)
        assert said.exit_code == 1
        assert "FP1001" in said.err


def test_a_hash_is_of_the_meaning_wherever_the_plan_lies(give: Give, run: Path) -> None:
    printed = {give("hash", where).out for where in ("small.forge", "runs/small", "runs/small/plan.json")}
    assert len(printed) == 1
    other = give("hash", "small.forge", "--set", "seed=7").out
    assert {other} == {give("hash", "runs/small/checkpoints/step-2").out} != printed
    facts = json.loads(give("hash", "runs/small", "--json").out)
    assert facts["meaning"] + "\n" in printed
    assert facts["file"] == json.loads((run / "plan.json").read_text())["file"]
    assert json.loads(give("hash", "small.forge", "--json").out)["file"] is None
    assert give("hash", "runs/small", "--set", "seed=7").exit_code == 2
