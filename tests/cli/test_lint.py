"""Does `forgeplan lint` show every fault of every file, in the form that was asked for?"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

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


def test_a_key_is_told_and_not_repeated_whatever_else_is_said_about_it(give: Give, folder: Path) -> None:
    key = "hf_" + "aB3" * 12
    text = (
        (folder / "small.forge")
        .read_text()
        .replace("budget ", f'precision.params = "{key}"\n  checkpoint.path = "/x/{key}"\n  budget ')
    )
    (folder / "small.forge").write_text(text)
    for form in ("full", "concise", "json", "sarif", "github", "junit"):
        said = give("lint", "small.forge", "--format", form)
        assert said.exit_code == 1
        assert "looks-like-secret" in said.out
        assert "FP0307" in said.out
        assert "FP0802" in said.out
        assert key not in said.out + said.err


def test_programs_get_a_list_even_if_it_is_empty(give: Give) -> None:
    assert json.loads(give("lint", "small.forge", "--format", "json").out)["diagnostics"] == []
    assert json.loads(give("lint", "faulty.forge", "--format", "json").out)["errors"] == 1


def test_colours_are_shown_when_they_are_asked_for(give: Give) -> None:
    assert "\x1b[" in give("lint", "faulty.forge", "--color", "always").out
    assert "\x1b[" not in give("lint", "faulty.forge", "--color", "never").out
    assert "\x1b[" not in give("lint", "faulty.forge").out


def broken(folder: Path, **replaced: str) -> Path:
    """`small.forge` with other texts in it, by the names of what they stand for."""
    text = (folder / "small.forge").read_text()
    for old, new in replaced.items():
        assert old in text
        text = text.replace(old, new)
    path = folder / "small.forge"
    path.write_bytes(text.encode())
    return path


def test_fix_applies_what_is_safe_and_leaves_what_is_not(give: Give, folder: Path) -> None:
    path = broken(folder, budget="precision = { compute = bfloat16 }\n  bugdet")
    said = give("lint", "small.forge", "--fix")
    assert "compute = bf16 }\n  bugdet" in path.read_text()
    assert said.out.startswith("fixed: small.forge\n  FP0311: write `bf16`\n")
    assert "`bugdet`" in said.out
    assert "can be mended by `--fix-all`" in said.out
    assert said.exit_code == 1


def test_fix_all_applies_the_others_too_and_the_exit_code_is_of_what_is_left(give: Give, folder: Path) -> None:
    path = broken(folder, budget="precision = { compute = bfloat16 }\n  bugdet")
    assert give("lint", "small.forge", "--fix-all").exit_code == 0
    assert "bf16 }\n  budget " in path.read_text()
    assert give("lint", "small.forge").exit_code == 0


def test_diff_shows_and_writes_nothing(give: Give, folder: Path) -> None:
    path = broken(folder, budget="bugdet")
    before = path.read_bytes()
    said = give("lint", "small.forge", "--fix-all", "--diff")
    assert said.out.startswith("--- small.forge\n+++ small.forge (fixed)\n")
    assert "\n-  bugdet " in said.out
    assert "\n+  budget " in said.out
    assert "would be fixed: small.forge" in said.err
    assert said.exit_code == 0
    assert path.read_bytes() == before


def test_diff_alone_shows_what(give: Give) -> None:
    said = give("lint", "small.forge", "--diff")
    assert (said.exit_code, said.out) == (2, "")
    assert "`--fix-all`" in said.err


def test_programs_get_their_document_alone(give: Give, folder: Path) -> None:
    broken(folder, budget="bugdet")
    said = give("lint", "small.forge", "--fix-all", "--format", "json")
    assert json.loads(said.out)["diagnostics"] == []
    assert said.err.startswith("fixed: small.forge\n")


def test_line_ends_tabs_and_wide_characters_stay_where_they_are(give: Give, folder: Path) -> None:
    path = broken(folder, **{"\n": "\r\n", "budget ": '\tname = "🚀é"\t, bugdet '})
    path.write_bytes(path.read_bytes().replace(b'name = "', b'let name = "', 1))
    before = path.read_bytes()
    give("lint", "small.forge", "--fix-all")
    assert path.read_bytes() == before.replace(b"bugdet", b"budget")


def test_a_fix_that_would_bring_an_error_is_not_applied(give: Give, folder: Path) -> None:
    """What is most like `lr` is written already, and one field twice is an error too."""
    path = broken(folder, **{"{ lr = peak_lr }": "{ lr = peak_lr, lrr = 1 }"})
    before = path.read_bytes()
    said = give("lint", "small.forge", "--fix-all")
    assert said.exit_code == 1
    assert path.read_bytes() == before
    assert "fixed" not in said.out


def test_shipped_modules_and_files_outside_of_the_project_are_left(give: Give, folder: Path) -> None:
    inside = folder / "project"
    inside.mkdir()
    (inside / "forge.toml").write_text("")
    outside = folder / "lib.forge"
    outside.write_text("forge 1\n\nlet wide = [1, 2,,]\n")
    (inside / "link.forge").symlink_to(outside)
    (inside / "plan.forge").write_text('forge 1\n\nfrom "link.forge" import wide\n')
    before = outside.read_bytes()
    assert give("lint", "project/plan.forge", "--fix-all").exit_code == 1
    assert outside.read_bytes() == before


def test_an_imported_file_of_the_project_is_mended_too(give: Give, folder: Path) -> None:
    (folder / "lib.forge").write_text("forge 1\n\nlet rate = .5e-3\n")
    path = broken(folder, **{"param": 'from "lib.forge" import rate\n\nparam', "lr = peak_lr": "lr = rate"})
    assert give("lint", path.name, "--fix").exit_code == 0
    assert (folder / "lib.forge").read_text() == "forge 1\n\nlet rate = 0.5e-3\n"


def test_services_get_paths_from_the_project(give: Give, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "forge.toml").write_text("")
    (folder / "plans").mkdir()
    (folder / "plans" / "faulty.forge").write_bytes((folder / "faulty.forge").read_bytes())
    monkeypatch.chdir(folder / "plans")
    said = give("lint", "faulty.forge", "--format", "github")
    assert said.out.startswith("::error file=plans/faulty.forge,line=8,endLine=8,col=55,")
    log = json.loads(give("lint", "faulty.forge", "--format", "sarif").out)
    assert log["runs"][0]["artifacts"][0]["location"]["uri"] == "plans/faulty.forge"
