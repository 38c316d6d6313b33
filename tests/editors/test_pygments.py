"""Does Pygments colour every token as what the language takes it for?"""

from __future__ import annotations

import subprocess
import sys

import pytest
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import get_lexer_by_name, get_lexer_for_filename
from pygments.token import Error

from forgeplan.editors.pygments_lexer import TOKENS, ForgeLexer
from forgeplan.editors.rules import Role
from tests.editors.test_textmate import differences
from tests.editors.texts import TEXTS

ROLES = {token: role for role, token in TOKENS.items()}


def roles(text: str) -> list[Role | None]:
    found: list[Role | None] = [None] * len(text)
    for start, token, piece in ForgeLexer().get_tokens_unprocessed(text):
        found[start : start + len(piece)] = [ROLES.get(token)] * len(piece)
    return found


def test_every_role_has_a_token_of_its_own() -> None:
    assert set(TOKENS) == set(Role)
    assert len(ROLES) == len(TOKENS)


@pytest.mark.parametrize("name", TEXTS)
def test_every_token_has_the_role_that_the_language_gives_it(name: str) -> None:
    assert differences(TEXTS[name], roles) == []


@pytest.mark.parametrize("name", TEXTS)
def test_no_token_of_a_plan_is_an_error_and_none_is_lost(name: str) -> None:
    found = list(ForgeLexer().get_tokens_unprocessed(TEXTS[name]))
    assert [piece for _, token, piece in found if token is Error] == []
    assert "".join(piece for _, _, piece in found) == TEXTS[name]


@pytest.mark.parametrize(
    "text", ['let a = "open ${b\nlet c = 1\n', 'let a = """open\n${ {\n', "x = 1_ 0x1F é ; '\n", "} } ] )\n"]
)
def test_what_is_not_finished_is_read_to_its_end(text: str) -> None:
    assert "".join(piece for _, _, piece in ForgeLexer().get_tokens_unprocessed(text)) == text


def test_a_string_that_does_not_close_ends_with_its_line() -> None:
    text = 'let a = "open ${b\nlet c = 1\n'
    assert roles(text)[text.index("let c")] is Role.KEYWORD


def test_pygments_finds_the_lexer_by_name_and_by_file() -> None:
    assert isinstance(get_lexer_by_name("forge"), ForgeLexer)
    assert isinstance(get_lexer_for_filename("quickstart.forge"), ForgeLexer)
    assert '<span class="kd">plan</span>' in highlight("plan a {\n}\n", get_lexer_by_name("forge"), HtmlFormatter())


def test_the_lexer_needs_pygments_and_the_language_only() -> None:
    program = "import sys, forgeplan.editors.pygments_lexer; print(*{m.split('.')[0] for m in sys.modules})"
    imported = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert not {"torch", "networkx", "rich", "click", "lark"} & set(imported.split())
