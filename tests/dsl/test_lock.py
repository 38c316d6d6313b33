"""Is what a plan imports held to `forge.lock`, byte for byte, and is the difference shown at its place?"""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from forgeplan.analysis import analyse
from forgeplan.diagnostics.diagnostic import Diagnostic, Safety
from forgeplan.diagnostics.edits import apply
from forgeplan.dsl.lockfile import LOCK, Lock, Pin, Unreadable, read_lock, write_lock
from forgeplan.dsl.locking import changes, imports_of, present_lock, project_files, renewed

LIBRARY = "forge 1\n\n# Of the node.\nlet width = 128\n\nlet depth = 2\n"
PLAN = 'forge 1\n\nfrom "lib/sizes.forge" import width\n'


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with a plan, a library and a lock that pins it."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "forge.toml").touch()
    (tmp_path / "lib").mkdir()
    write(tmp_path / "lib/sizes.forge", LIBRARY)
    write(tmp_path / "plan.forge", PLAN)
    lock(tmp_path)
    return tmp_path


def write(path: Path, text: str) -> None:
    path.write_bytes(text.encode())


def lock(project: Path) -> None:
    files = imports_of(project_files(project), project).files
    write(project / LOCK, write_lock(renewed(present_lock(project), files, is_whole=True)))


def found(project: Path) -> list[Diagnostic]:
    return list(analyse("plan.forge").diagnostics)


def test_what_is_as_it_was_locked_passes(project: Path) -> None:
    assert found(project) == []


@pytest.mark.parametrize(
    ("before", "after", "label", "note"),
    [
        ("depth = 2", "depth = 3", "`depth` is the first that differs", ""),
        ("let depth", "let more = 1\n\nlet depth", "`more` is new", ""),
        ("\n\nlet depth = 2", "", "", "`depth` is gone"),
        ("# Of the", "# Of a", "", "every declaration is as it was: comments, blank lines or the order differ"),
        ("\n", "\r\n", "", "only the ends of lines differ"),
    ],
)
def test_other_bytes_are_an_error_that_shows_the_first_difference(
    before: str, after: str, label: str, note: str, project: Path
) -> None:
    write(project / "lib/sizes.forge", LIBRARY.replace(before, after))
    [fault] = found(project)
    assert (fault.code, fault.severity.value) == ("FP0207", "error")
    assert fault.message.startswith("lib/sizes.forge is not what forge.lock pins: sha256 ")
    assert [one.text for one in fault.labels[1:]] == [label] * bool(label)
    assert [one.startswith(note) for one in fault.notes] == [True] * bool(note)


def test_only_what_is_read_counts_also_where_an_editor_holds_it(project: Path) -> None:
    path = str((project / "lib/sizes.forge").resolve())
    typed = LIBRARY.replace("128", "129")
    [fault] = analyse("plan.forge", unsaved={path: typed}).diagnostics
    assert fault.code == "FP0207"
    write(Path(path), typed)
    assert analyse("plan.forge", unsaved={path: LIBRARY}).diagnostics == ()


def test_a_file_that_is_not_pinned_is_an_error_as_long_as_there_is_a_lock(project: Path) -> None:
    write(project / "more.forge", "forge 1\n\nlet a = 1\n")
    write(project / "plan.forge", PLAN + 'import "more.forge" as more\n')
    assert [fault.message for fault in found(project)] == ["more.forge is not in forge.lock"]
    (project / LOCK).unlink()
    assert found(project) == []


def test_the_fix_pins_what_is_there_and_asks_before(project: Path) -> None:
    write(project / "lib/sizes.forge", LIBRARY.replace("128", "129"))
    [fault] = found(project)
    [fix] = fault.fixes
    assert fix.safety is Safety.ASK
    write(project / LOCK, apply([fix], {LOCK: (project / LOCK).read_text()}).texts[LOCK])
    assert found(project) == []


@pytest.mark.parametrize(
    "text",
    [
        "<<<<<<< HEAD\nformat = 1\n",
        "format = 2\n",
        "",
        'format = 1\nfiles = "all"\n',
        'format = 1\n[files."lib/sizes.forge"]\nsha256 = "12"\n',
        b"\xff",
        pytest.param("a = " + "[" * 20_000, id="nested"),
        pytest.param("# " + "x" * 5_000_000, id="large"),
    ],
)
def test_a_lock_that_cannot_be_read_vouches_for_nothing_and_is_told_once(text: str | bytes, project: Path) -> None:
    (project / LOCK).write_bytes(text.encode() if isinstance(text, str) else text)
    write(project / "plan.forge", PLAN + 'from "std:models" import debug\n')
    [fault] = found(project)
    assert fault.code == "FP0207"
    assert fault.message.startswith("forge.lock cannot be read, so nothing vouches for what is imported: ")


def test_a_std_module_is_pinned_with_the_version_that_it_first_came_with(project: Path) -> None:
    write(project / "plan.forge", 'forge 1\n\nfrom "std:models" import debug\n')
    lock(project)
    pins = read_lock((project / LOCK).read_text())
    pin = pins.files["std:models"]
    assert list(pins.files) == ["std:models"]
    older = Pin(pin.sha256, pin.declarations, "0.0.9")
    assert renewed(Lock({"std:models": older}), {"std:models": pin}, is_whole=True).files == {"std:models": older}
    write(project / LOCK, write_lock(Lock({"std:models": Pin("0" * 64, {"debug": "1"}, "0.0.9")})))
    [fault] = found(project)
    assert any(note.startswith("it was locked with forgeplan 0.0.9, and this is ") for note in fault.notes)


def test_a_lock_is_the_same_text_whatever_the_order_and_reads_back() -> None:
    a, b = Pin("a" * 64, {"plan p": "1", 'test "\x7f é': "2"}), Pin("b" * 64, {}, "1.0")
    text = write_lock(Lock({"std:b": b, 'odd "name".forge': a}))
    assert text == write_lock(Lock({'odd "name".forge': a, "std:b": b}))
    assert read_lock(text) == Lock({"std:b": b, 'odd "name".forge': a})
    assert tomllib.loads(text)["format"] == 1
    with pytest.raises(Unreadable, match="format 3"):
        read_lock("format = 3")


def test_locking_one_plan_leaves_what_others_import(project: Path) -> None:
    before = Lock({"other.forge": Pin("0" * 64)})
    files = imports_of([project / "plan.forge"], project).files
    assert set(renewed(before, files, is_whole=False).files) == {"other.forge", "lib/sizes.forge"}
    after = renewed(before, files, is_whole=True)
    assert changes(before, after) == ["+ lib/sizes.forge", "- other.forge"]


def test_a_project_is_read_without_hidden_folders_and_without_the_projects_inside(project: Path) -> None:
    for name in (".venv/x.forge", "inner/forge.toml", "inner/y.forge", "runs/z.forge"):
        (project / name).parent.mkdir(exist_ok=True)
        (project / name).touch()
    names = [str(path.relative_to(project)) for path in project_files(project)]
    assert names == ["lib/sizes.forge", "plan.forge", "runs/z.forge"]
