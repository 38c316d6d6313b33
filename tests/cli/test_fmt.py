"""Does `forgeplan fmt` write only what it should, and say with its exit code what it found?"""

from __future__ import annotations

import io
import sys
from pathlib import Path

import pytest

from tests.cli.commands import PLAN
from tests.cli.conftest import Give

UNTIDY = PLAN.replace("  cluster   = {", "cluster={")


@pytest.fixture
def untidy(folder: Path) -> Path:
    path = folder / "untidy.forge"
    path.write_text(UNTIDY)
    return path


def test_a_file_is_rewritten_in_its_form(give: Give, untidy: Path) -> None:
    said = give("fmt", "untidy.forge", "small.forge")
    assert (said.exit_code, said.out, said.err) == (0, "", "formatted: untidy.forge\n")
    assert untidy.read_text() == PLAN


def test_a_check_writes_nothing_and_ends_with_10(give: Give, untidy: Path) -> None:
    said = give("fmt", "--check", "untidy.forge")
    assert (said.exit_code, said.err) == (10, "would be formatted: untidy.forge\n")
    assert untidy.read_text() == UNTIDY
    assert give("fmt", "--check", "small.forge").exit_code == 0


def test_a_difference_is_shown_and_nothing_written(give: Give, untidy: Path) -> None:
    said = give("fmt", "--diff", "untidy.forge")
    assert said.exit_code == 0
    assert "\n-cluster={ nodes = 1" in said.out
    assert "\n+  cluster   = { nodes = 1" in said.out
    assert untidy.read_text() == UNTIDY
    assert give("fmt", "--diff", "--check", "untidy.forge").exit_code == 10


def test_standard_input_goes_to_standard_output(give: Give, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(UNTIDY.encode())))
    assert give("fmt", "-").out == PLAN


def test_a_file_with_syntax_errors_is_left_alone_and_the_others_are_formatted(
    give: Give, untidy: Path, folder: Path
) -> None:
    broken = PLAN.replace("{ steps = 4 steps }", "{ steps = 4 steps")
    (folder / "broken.forge").write_text(broken)
    said = give("fmt", "broken.forge", "untidy.forge")
    assert said.exit_code == 1
    assert "error[FP0104]" in said.err
    assert "broken.forge is left as it is" in said.err
    assert (folder / "broken.forge").read_text() == broken
    assert untidy.read_text() == PLAN


def test_permissions_and_links_stay(give: Give, untidy: Path, folder: Path) -> None:
    untidy.chmod(0o640)
    (folder / "link.forge").symlink_to(untidy)
    give("fmt", "link.forge")
    assert (folder / "link.forge").is_symlink()
    assert untidy.read_text() == PLAN
    assert untidy.stat().st_mode & 0o777 == 0o640
    assert not [path for path in folder.iterdir() if path.name.startswith(".")]


def test_of_a_folder_all_plan_files_are_formatted_but_hidden_ones(give: Give, untidy: Path, folder: Path) -> None:
    for place in ("deep/er/a.forge", "deep/.hidden/b.forge", "deep/.c.forge", "deep/d.txt"):
        (folder / place).parent.mkdir(parents=True, exist_ok=True)
        (folder / place).write_text(UNTIDY)
    said = give("fmt", "deep", "untidy.forge", "untidy.forge")
    assert said.err == "formatted: deep/er/a.forge\nformatted: untidy.forge\n"
    assert (folder / "deep/er/a.forge").read_text() == PLAN
    for place in ("deep/.hidden/b.forge", "deep/.c.forge", "deep/d.txt"):
        assert (folder / place).read_text() == UNTIDY


def test_a_folder_without_plan_files_is_a_mistake(give: Give, folder: Path) -> None:
    (folder / "empty").mkdir()
    said = give("fmt", "empty")
    assert said.exit_code == 2
    assert "the folder empty has no *.forge files" in said.err
