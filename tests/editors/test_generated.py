"""Are the files that are made from the table of roles those that the table makes?"""

from __future__ import annotations

import pytest

from forgeplan.dsl.tokens import RESERVED, SOFT
from forgeplan.editors import words
from forgeplan.editors.__main__ import GENERATED
from tests.editors.texts import ROOT


@pytest.mark.parametrize("name", GENERATED)
def test_a_file_is_what_its_table_makes(name: str) -> None:
    written = (ROOT / "grammar" / name).read_text(encoding="utf-8")
    assert written == GENERATED[name](), "python -m forgeplan.editors writes it anew"


def test_every_word_of_the_language_has_a_place() -> None:
    assert {*words.LEADERS, *words.FOLLOWERS} == set(SOFT)
    placed = [*words.CONSTANTS, *words.WORD_OPERATORS, *words.BRANCHES, words.SELF]
    assert sorted(placed) == sorted([*RESERVED, "auto"])
