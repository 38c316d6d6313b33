"""Does the TextMate grammar colour every token as what the language takes it for?"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable

import pytest

from forgeplan.editors.rules import Role
from forgeplan.editors.textmate import SCOPES
from tests.editors.oracle import pieces
from tests.editors.textmate_reader import Reader
from tests.editors.texts import ROOT, TEXTS

GRAMMAR = ROOT / "grammar" / "forge.tmLanguage.json"
ROLES = {scope: role for role, scope in SCOPES.items()}


def roles(text: str) -> list[Role | None]:
    """The role of each character, by the innermost scope that has one."""
    found: list[Role | None] = [None] * len(text)
    for start, end, scopes in Reader(json.loads(GRAMMAR.read_text(encoding="utf-8"))).read(text):
        role = next((ROLES[scope] for scope in reversed(scopes) if scope in ROLES), None)
        found[start:end] = [role] * (end - start)
    return found


def differences(text: str, roles_of: Callable[[str], list[Role | None]]) -> list[str]:
    found = roles_of(text)
    assert len(found) == len(text)
    return list(_differences(text, found))


def _differences(text: str, found: list[Role | None]) -> Iterable[str]:
    for start, end, role in pieces(text):
        seen = {found[i] for i in range(start, end) if not text[i].isspace()}
        if seen != {role}:
            line = text.count("\n", 0, start) + 1
            yield f"{line}: {text[start:end]!r} is {role}, coloured as {seen}"


@pytest.mark.parametrize("name", TEXTS)
def test_every_token_has_the_scope_of_its_role(name: str) -> None:
    assert differences(TEXTS[name], roles) == []
