"""Does `forgeplan lint` show every fault of every file, in the form that was asked for?"""

from __future__ import annotations

import json
from pathlib import Path

from tests.cli.conftest import Give


def test_a_good_file_gives_one_line(give: Give) -> None:
    said = give("lint", "small.forge", "two.forge")
    assert (said.exit_code, said.out, said.err) == (0, "2 files checked: nothing found\n", "")


def test_faults_of_several_files_are_shown_together(give: Give, folder: Path) -> None:
    (folder / "other.forge").write_text((folder / "small.forge").read_text().replace("budget ", "bugdet "))
    said = give("lint", "faulty.forge", "other.forge", "small.forge", "--format", "concise")
    lines = said.out.splitlines()
    assert said.exit_code == 1
    assert lines[0].startswith("faulty.forge:8:55: error[FP0501]: ")
    assert all(line.startswith("other.forge:") for line in lines[1:])
    assert "`bugdet`" in said.out


def test_warnings_alone_are_no_failure(give: Give, folder: Path) -> None:
    text = (folder / "small.forge").read_text()
    two = "{ counter = synthetic {}, more = synthetic {} }\n  mixture   = { counter = 100% }"
    (folder / "small.forge").write_text(text.replace("{ counter = synthetic {} }", two))
    said = give("lint", "small.forge", "--format", "concise")
    assert said.exit_code == 0
    assert "warning[unused-source]" in said.out


def test_programs_get_a_list_even_if_it_is_empty(give: Give) -> None:
    assert json.loads(give("lint", "small.forge", "--format", "json").out)["diagnostics"] == []
    assert json.loads(give("lint", "faulty.forge", "--format", "json").out)["errors"] == 1


def test_colours_are_shown_when_they_are_asked_for(give: Give) -> None:
    assert "\x1b[" in give("lint", "faulty.forge", "--color", "always").out
    assert "\x1b[" not in give("lint", "faulty.forge", "--color", "never").out
    assert "\x1b[" not in give("lint", "faulty.forge").out
