"""Do `new`, `graph`, `test` and the command line itself do what they say?"""

from __future__ import annotations

from pathlib import Path

import pytest

from forgeplan.cli.commands.new import STARTERS
from tests.cli.commands import PLAN
from tests.cli.conftest import Give


@pytest.mark.parametrize("starter", STARTERS)
def test_a_new_plan_is_without_fault_and_in_form(give: Give, starter: str) -> None:
    said = give("new", "--from", starter, "mine.forge")
    assert said.out.startswith("mine.forge is written\n")
    assert give("lint", "mine.forge").out == "1 file checked: nothing found\n"
    assert give("fmt", "--check", "mine.forge").exit_code == 0
    assert give("compile", "mine.forge").exit_code == 0


def test_a_new_plan_never_replaces_a_file(give: Give, folder: Path) -> None:
    said = give("new", "small.forge")
    assert said.exit_code == 2
    assert said.err == "error: small.forge exists, and is left as it is\n  help: name another file\n"
    assert (folder / "small.forge").read_text() == PLAN


def test_a_new_plan_can_go_into_a_folder(give: Give, folder: Path) -> None:
    (folder / "plans").mkdir()
    give("new", "plans")
    give("new", "deep/down/first.forge")
    assert (folder / "plans/quickstart.forge").read_text() == (folder / "deep/down/first.forge").read_text()


def test_a_graph_is_drawn_for_graphviz_and_for_mermaid(give: Give) -> None:
    dot = give("graph", "small.forge")
    assert dot.out.startswith('digraph "small" {\n')
    assert dot.out.endswith("}\n")
    assert give("graph", "small.forge", "--format", "mermaid").out.startswith("flowchart LR\n")
    assert give("graph", "faulty.forge").exit_code == 1


def test_tests_of_a_file_are_run_and_counted(give: Give, folder: Path) -> None:
    tests = (
        'test "half the ranks" for small {\n  expect mesh.world == 2\n}\n\n'
        'test "wrong" for small {\n  expect mesh.world == 3\n}\n'
    )
    (folder / "tested.forge").write_text(f"{PLAN}\n{tests}")
    said = give("test", "tested.forge", "small.forge")
    assert said.exit_code == 1
    assert "ok     tested.forge: half the ranks (small)" in said.out
    assert "FAILED tested.forge: wrong (small)\nerror[FP0318]" in said.out
    assert said.out.endswith("1 passed, 1 failed\n")
    assert give("test", "small.forge").exit_code == 0


def test_tests_of_a_file_with_errors_are_not_run(give: Give) -> None:
    said = give("test", "faulty.forge")
    assert said.exit_code == 1
    assert "FAILED faulty.forge: its tests are not run, as it has errors" in said.out


def test_a_model_that_does_not_exist_writes_nothing(give: Give) -> None:
    said = give("generate", "runs/none")
    assert (said.exit_code, said.out) == (1, "")
    assert said.err.startswith("error[FP1012]: runs/none does not exist\n  help: ")


@pytest.mark.parametrize("option", ["-h", "--help"])
def test_help_names_every_command(give: Give, option: str) -> None:
    said = give(option)
    assert said.exit_code == 0
    for name in ("compile", "doctor", "explain", "fmt", "generate", "graph", "lint", "new", "run", "selftest", "test"):
        assert f"\n  {name} " in said.out
    assert "..." not in said.out.partition("Commands:")[2]


def test_a_version_is_shown(give: Give) -> None:
    said = give("--version")
    assert said.exit_code == 0
    assert said.out.startswith("forgeplan ")
