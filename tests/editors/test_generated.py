"""Are the files that are made from the table of roles those that the table makes?"""

from __future__ import annotations

import pytest

from forgeplan.dsl.strings import ESCAPES
from forgeplan.dsl.tokens import OPERATORS, RESERVED, SOFT
from forgeplan.editors import words
from forgeplan.editors.__main__ import GENERATED
from forgeplan.editors.rules import Role
from tests.editors import test_pygments, test_textmate
from tests.editors.oracle import pieces
from tests.editors.texts import EVERYTHING, ROOT


@pytest.mark.parametrize("name", GENERATED)
def test_a_file_is_what_its_table_makes(name: str) -> None:
    written = (ROOT / "grammar" / name).read_text(encoding="utf-8")
    assert written == GENERATED[name](), "python -m forgeplan.editors writes it anew"


def test_every_word_and_sign_of_the_language_is_in_what_the_grammars_are_held_to() -> None:
    found = [(EVERYTHING[start:end], role) for start, end, role in pieces(EVERYTHING)]
    assert {word for word, role in found if role is Role.KEYWORD} == set(SOFT)
    reserved = (Role.CONSTANT, Role.SELF, Role.WORD_OPERATOR, Role.BRANCH)
    assert {word for word, role in found if role in reserved} == {*RESERVED, *words.CONSTANTS}
    assert set(OPERATORS) <= {word for word, _ in found}
    assert {role for _, role in found} == set(Role) - {Role.ESCAPE, Role.ILLEGAL}  # these are parts of tokens, or none


@pytest.mark.parametrize("escape", [*(f"\\{letter}" for letter in ESCAPES), "\\u{1F600}"])
def test_every_escape_is_one(escape: str) -> None:
    text = f'forge 1\nlet a = "x{escape}y"\n'
    at = text.index(escape)
    for roles in (test_textmate.roles(text), test_pygments.roles(text)):
        assert set(roles[at : at + len(escape)]) == {Role.ESCAPE}
        assert roles[at - 1] is roles[at + len(escape)] is Role.STRING
