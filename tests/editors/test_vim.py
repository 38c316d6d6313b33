"""Do Vim and Neovim know plan files: their type, the colour of every token, their indentation and their form?"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from forgeplan.editors.rules import Role
from forgeplan.editors.vim import group
from tests.editors.editor import run_script
from tests.editors.test_textmate import differences
from tests.editors.texts import TEXTS

EDITORS = ("nvim", "vim")
ROLES = {group(role): role for role in Role}

# A line of output for each line of text: the group of every byte, numbers standing for names.
_DUMP = """
function! Dump(file) abort
  let names = {}
  let lines = []
  for row in range(1, line('$'))
    let found = []
    for column in range(1, strlen(getline(row)))
      let name = synIDattr(synID(row, column, 0), 'name')
      let names[name] = get(names, name, len(names))
      call add(found, names[name])
    endfor
    call add(lines, found)
  endfor
  call writefile([json_encode({'names': names, 'lines': lines, 'type': &filetype})], a:file)
endfunction
"""


@pytest.fixture(scope="module", params=EDITORS)
def dumped(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict]:  # type: ignore[type-arg]
    """What an editor says of every text, opened as a file."""
    folder = tmp_path_factory.mktemp(request.param)
    script = [_DUMP]
    for i, text in enumerate(TEXTS.values()):
        (folder / f"{i}.forge").write_text(text, encoding="utf-8")
        script.append(f"edit! {i}.forge\ncall Dump('{i}.json')")
    run_script(request.param, folder, "\n".join([*script, "qall!"]))
    return {name: json.loads((folder / f"{i}.json").read_text()) for i, name in enumerate(TEXTS)}


def test_the_type_of_a_file_is_found(dumped: dict[str, dict]) -> None:  # type: ignore[type-arg]
    assert {found["type"] for found in dumped.values()} == {"forge"}


@pytest.mark.parametrize("name", TEXTS)
def test_every_token_has_the_group_of_its_role(name: str, dumped: dict[str, dict]) -> None:  # type: ignore[type-arg]
    assert differences(TEXTS[name], lambda text: _roles(text, dumped[name])) == []


def _roles(text: str, dump: dict) -> list[Role | None]:  # type: ignore[type-arg]
    names = {number: name.partition("_")[0] for name, number in dump["names"].items()}
    found: list[Role | None] = []
    for line, numbers in zip(text.splitlines(), dump["lines"], strict=True):
        at = 0
        for character in line:
            found.append(ROLES.get(names[numbers[at]]))
            at += len(character.encode())
        found.append(None)
    return found[: len(text)]


@pytest.mark.parametrize("editor", EDITORS)
def test_indentation_gives_every_shipped_plan_its_own_form(editor: str, tmp_path: Path) -> None:
    shipped = {name: text for name, text in TEXTS.items() if name.endswith(".forge")}
    script = []
    for name, text in shipped.items():
        (tmp_path / name).write_text("\n".join(line.lstrip() for line in text.split("\n")), encoding="utf-8")
        script.append(f"edit! {name}\nnormal! gg=G\nwrite!")
    run_script(editor, tmp_path, "\n".join([*script, "qall!"]))
    assert {name: (tmp_path / name).read_text(encoding="utf-8") for name in shipped} == shipped


@pytest.mark.parametrize("editor", EDITORS)
def test_a_statement_that_goes_on_is_indented_and_a_block_of_text_kept(editor: str, tmp_path: Path) -> None:
    text = (
        'forge 1\n\nlet a = """\n   kept\n x\n"""\nplan b {\n  assert a == 1\n    else "no # {"  # {\n  seed = 1\n\n'
        "  apply = [\n    tp { sequence = true },\n    compile,\n  ]\n  profile x {\n    seed = 2\n  }\n}\n"
    )
    (tmp_path / "a.forge").write_text(text, encoding="utf-8")
    run_script(editor, tmp_path, "edit a.forge\nnormal! gg=G\nwrite!\nqall!")
    assert (tmp_path / "a.forge").read_text(encoding="utf-8") == text


@pytest.mark.parametrize("editor", EDITORS)
def test_typing_a_plan_indents_it(editor: str, tmp_path: Path) -> None:
    keys = "iplan a {\\<CR>mesh = {\\<CR>tp = 2\\<CR>}\\<CR>seed = 1\\<CR>}\\<Esc>"
    run_script(editor, tmp_path, f'edit a.forge\nexecute "normal {keys}"\nwrite!\nqall!')
    typed = (tmp_path / "a.forge").read_text(encoding="utf-8")
    assert typed == "plan a {\n  mesh = {\n    tp = 2\n  }\n  seed = 1\n}\n"


@pytest.mark.parametrize("editor", EDITORS)
def test_gq_formats_a_faultless_file_and_leaves_another_as_it_is(editor: str, tmp_path: Path) -> None:
    faulty = "forge 1\nlet a = [1,\n"
    (tmp_path / "good.forge").write_text("forge 1\n\n\n\nlet a=1\nlet   bcd=2\n\n\n\n", encoding="utf-8")
    (tmp_path / "faulty.forge").write_text(faulty, encoding="utf-8")
    script = "edit good.forge\nnormal! gqq\nwrite!\nedit faulty.forge\nnormal! gqq\nwrite!\nqall!"
    run_script(editor, tmp_path, script, path=str(Path(sys.executable).parent))
    assert (tmp_path / "good.forge").read_text(encoding="utf-8") == "forge 1\n\nlet a   = 1\nlet bcd = 2\n"
    assert (tmp_path / "faulty.forge").read_text(encoding="utf-8") == faulty


@pytest.mark.parametrize("editor", EDITORS)
def test_comments_are_continued_and_the_file_type_can_be_undone(editor: str, tmp_path: Path) -> None:
    script = (
        'edit a.forge\nexecute "normal i## one\\<CR>two\\<Esc>"\nwrite!\n'
        "call writefile([&commentstring, &formatprg, &shiftwidth], 'options')\n"
        "set filetype=text\ncall writefile([&commentstring, &formatprg, &indentexpr], 'undone')\nqall!"
    )
    run_script(editor, tmp_path, script)
    assert (tmp_path / "a.forge").read_text(encoding="utf-8") == "## one\n## two\n"
    assert (tmp_path / "options").read_text().splitlines() == ["# %s", "forgeplan fmt -", "2"]
    assert "forge" not in (tmp_path / "undone").read_text()
