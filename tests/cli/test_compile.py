"""Does `forgeplan compile` write the plan that was asked for, and nothing where there is none?"""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path

from forgeplan.plan.verify import read
from tests.cli.commands import run_process
from tests.cli.conftest import Give


def test_the_execution_plan_is_named_after_the_plan_and_can_be_read(give: Give, folder: Path) -> None:
    said = give("compile", "small.forge")
    plan = read((folder / "small.plan.json").read_bytes())
    assert (said.exit_code, plan.name, plan.steps) == (0, "small", 4)
    assert said.out == f"small.plan.json: plan small, hash {plan.meaning[:12]}, for 2 processes\n"


def test_profile_params_and_fields_can_be_chosen(give: Give, folder: Path) -> None:
    said = give("compile", "small.forge", "--profile", "short", "--set", "peak_lr=1e-3", "--set", "seed=5")
    plan = read((folder / "small@short.plan.json").read_bytes())
    assert said.exit_code == 0
    assert (plan.steps, plan.job.optimizer.lr, plan.job.seed) == (2, Fraction(1, 1000), 5)


def test_a_plan_can_go_to_standard_output(give: Give) -> None:
    said = give("compile", "small.forge", "-o", "-")
    assert read(said.out.encode()).name == "small"


def test_the_command_is_recorded(folder: Path) -> None:
    assert run_process("compile", "small.forge", "-o", "out.json", folder=folder).exit_code == 0
    assert read((folder / "out.json").read_bytes()).tools["command"] == "forgeplan compile small.forge -o out.json"


def test_what_is_wrong_is_shown_and_nothing_is_written(give: Give, folder: Path) -> None:
    said = give("compile", "faulty.forge")
    assert said.exit_code == 1
    assert "error[FP0501]" in said.err
    assert said.err.endswith("1 error\n")
    assert said.out == ""
    assert not list(folder.glob("*.json"))


def test_success_and_faults_are_told_in_json(give: Give) -> None:
    good = json.loads(give("compile", "small.forge", "--json").out)
    bad = give("compile", "faulty.forge", "--json")
    assert (good["written"], good["name"]) == ("small.plan.json", "small")
    unknown = give("compile", "small.forge", "--plan", "smal", "--json")
    assert json.loads(bad.out)["diagnostics"][0]["code"] == "FP0501"
    assert json.loads(unknown.out)["diagnostics"][0]["code"] == "FP0209"
    assert (bad.exit_code, bad.err, unknown.exit_code, unknown.err) == (1, "", 2, "")


def test_a_fault_of_another_profile_does_not_stand_in_the_way(give: Give, folder: Path) -> None:
    text = (folder / "small.forge").read_text()
    (folder / "small.forge").write_text(text.replace("budget = { steps = 2 steps }", "model.heads = 3"))
    assert give("compile", "small.forge").exit_code == 0
    assert give("compile", "small.forge", "--profile", "short").exit_code == 1
    assert give("lint", "small.forge").exit_code == 1


def test_one_of_several_plans_must_be_chosen(give: Give, folder: Path) -> None:
    said = give("compile", "two.forge")
    assert said.exit_code == 2
    assert "two.forge has several plans: small, second\n  help: choose one, as in `--plan small`" in said.err
    assert give("compile", "two.forge", "--plan", "second").exit_code == 0
    assert (folder / "second.plan.json").exists()


def test_an_unknown_name_in_the_file_is_a_fault_of_the_file(give: Give, folder: Path) -> None:
    (folder / "two.forge").write_text((folder / "two.forge").read_text().replace("extends small", "extends smal"))
    said = give("compile", "two.forge", "--plan", "second")
    assert said.exit_code == 1
    assert "error[FP0209]: there is no plan `smal`" in said.err
