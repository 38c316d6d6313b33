"""Are names followed, and given other spellings, through all files of a workspace?"""

from __future__ import annotations

from pathlib import Path

import pytest

from forgeplan.lsp.features.definition import definition
from forgeplan.lsp.features.references import highlights, references
from forgeplan.lsp.features.rename import CannotRename, prepare_rename, rename
from tests.lsp.cursor import CURSOR, at_cursor

LIBRARY = "forge 1\n\nlet width = 64\nlet depth = width\n\npartial plan base {\n  sources = { web = synthetic }\n}\n"
PLAN = (
    'forge 1\n\nfrom "lib.forge" import width, base\nfrom "std:models" import llama3_8b\n\nlet tall = width\n\n'
    "plan p extends base {\n  model = llama3_8b { dim = width, layers = tall }\n  eval e { source = web }\n}\n"
)
OTHER = 'forge 1\n\nimport "../lib.forge" as lib\n\nlet far = lib.width\n'


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "forge.toml").touch()
    (tmp_path / "lib.forge").write_text(LIBRARY)
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "other.forge").write_text(OTHER)
    return tmp_path


def put(before: str) -> str:
    assert PLAN.count(before) == 1
    return PLAN.replace(before, before + CURSOR)


@pytest.mark.parametrize(
    ("cursor", "file", "line"),
    [
        ("let tall = wid", "lib.forge", 2),
        ("layers = ta", "a.forge", 5),
        ("extends ba", "lib.forge", 5),
        ("source = we", "lib.forge", 6),
        ("model = llama3", "models.forge", None),
        ('from "lib.fo', "lib.forge", 0),
        ('"std:mod', "models.forge", 0),
    ],
)
def test_a_name_leads_to_its_file_and_line(folder: Path, cursor: str, file: str, line: int | None) -> None:
    found = definition(*at_cursor(folder, put(cursor)))
    assert found is not None
    assert found.uri.endswith(f"/{file}")
    assert line is None or found.range.start.line == line


def test_all_places_of_a_name_are_found_in_closed_files_too(folder: Path) -> None:
    snapshot, at, workspace = at_cursor(folder, put("let tall = wid"))
    found = [(one.uri.rpartition("/")[2], one.range.start.line) for one in references(snapshot, at, workspace)]
    assert sorted(found) == [
        ("a.forge", 2), ("a.forge", 5), ("a.forge", 8), ("lib.forge", 2), ("lib.forge", 3), ("other.forge", 4),
    ]  # fmt: skip
    without = references(snapshot, at, workspace, include_declaration=False)
    assert len(without) == len(found) - 1
    assert len(highlights(snapshot, at, workspace)) == 3


def test_a_new_name_is_written_everywhere(folder: Path) -> None:
    snapshot, at, workspace = at_cursor(folder, put("dim = wid"))
    edit = rename(snapshot, at, "breadth", workspace)
    assert edit is not None
    assert edit.changes is not None
    assert {uri.rpartition("/")[2]: len(edits) for uri, edits in edit.changes.items()} == {
        "a.forge": 3, "lib.forge": 2, "other.forge": 1,
    }  # fmt: skip
    assert {one.new_text for edits in edit.changes.values() for one in edits} == {"breadth"}


@pytest.mark.parametrize(
    ("new", "reason"),
    [
        ("tall", "has a `tall` already"),
        ("bf16", "`bf16` means"),
        ("for", "a word of the language"),
        ("2wide", "is no name"),
        ("depth", "lib.forge has a `depth` already"),
    ],
)
def test_a_name_that_would_not_do_is_refused(folder: Path, new: str, reason: str) -> None:
    snapshot, at, workspace = at_cursor(folder, put("dim = wid"))
    with pytest.raises(CannotRename, match=reason):
        rename(snapshot, at, new, workspace)


def test_words_of_the_language_and_of_the_library_keep_their_names(folder: Path) -> None:
    assert prepare_rename(*at_cursor(folder, put("model = llama3"))) is None
    assert prepare_rename(*at_cursor(folder, put("  mod"))) is None
    snapshot, at, workspace = at_cursor(folder, put("model = llama3"))
    with pytest.raises(CannotRename, match="belongs to the library"):
        rename(snapshot, at, "mine", workspace)
    found = prepare_rename(*at_cursor(folder, put("dim = wid")))
    assert found is not None
    assert found.placeholder == "width"


def test_a_name_inside_of_a_body_does_not_capture_another(folder: Path) -> None:
    text = f"forge 1\n\nlet a = 1\n\nplan p {{\n  let b{CURSOR} = 2\n  seed = a + b\n}}\n"
    snapshot, at, workspace = at_cursor(folder, text)
    with pytest.raises(CannotRename):
        rename(snapshot, at, "a", workspace)
