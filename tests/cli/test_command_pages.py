"""Has every command a page with its synopsis, an example and its exit codes? (`tests/docs` runs the examples.)"""

from __future__ import annotations

import re

import click
import pytest

from forgeplan.cli.main import forgeplan
from forgeplan.runtime.options import ExitCode
from tests.cli.commands import ROOT
from tests.surface.surface import synopsis

PAGES = ROOT / "docs" / "commands"
NAMES = forgeplan.list_commands(click.Context(forgeplan))
EXIT_CODES = {value for value in vars(ExitCode).values() if isinstance(value, int)}


def test_every_command_has_a_page_and_every_page_a_command() -> None:
    assert sorted(path.stem for path in PAGES.glob("*.md")) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_a_page_shows_synopsis_example_and_exit_codes(name: str) -> None:
    command = forgeplan.get_command(click.Context(forgeplan), name)
    assert command is not None
    text = (PAGES / f"{name}.md").read_text(encoding="utf-8")
    shown = re.search(r"```text\n(.*?)```", text, re.DOTALL)
    assert text.startswith(f"# forgeplan {name}\n")
    assert shown is not None
    assert shown[1].split() == synopsis(f"forgeplan {name}", command).split()
    assert f"```console\n$ forgeplan {name} " in text or f"\n$ forgeplan {name}" in text
    codes = {int(code) for code in re.findall(r"^\| (\d+) \|", text, re.MULTILINE)}
    assert {0, 2, 3} <= codes <= EXIT_CODES


@pytest.mark.parametrize("name", NAMES)
def test_every_option_of_a_command_is_explained(name: str) -> None:
    command = forgeplan.get_command(click.Context(forgeplan), name)
    assert command is not None
    assert command.help
    assert command.short_help
    assert [p.name for p in command.params if isinstance(p, click.Option) and not p.help] == []
