"""Does VS Code's own tokenizer read the grammar as our reader of grammars does? Where `make vscode` has brought it."""

from __future__ import annotations

import json
import os
import subprocess
from typing import Any

import pytest

from tests.editors.node import modules, node
from tests.editors.test_textmate import GRAMMAR
from tests.editors.textmate_reader import Reader, Scoped
from tests.editors.texts import ROOT, TEXTS

UNFINISHED = {
    "a string that does not close": 'forge 1\nlet a = "open ${b\nlet c = 1\n',
    "a block that does not close": 'let a = """open\n${ {\nlet c = 1\n',
    "a missing brace": "plan x {\n  mesh = { tp = 2\n\nplan y {\n  batch = {\n",
    "odd characters": "let é = 'x'; 1_ 0x1F .5 08 7Foo\n\tlet b = 名 } ) ]\n",
}


@pytest.fixture(scope="module")
def by_vscode() -> dict[str, list[Any]]:
    found = modules("vscode-textmate", "vscode-oniguruma")
    texts = {**TEXTS, **UNFINISHED}
    grammar = json.loads(GRAMMAR.read_text(encoding="utf-8"))
    done = subprocess.run(
        [node(), str(ROOT / "tests" / "editors" / "scopes.js")],
        input=json.dumps({"grammar": grammar, "texts": list(texts.values())}),
        env={**os.environ, "NODE_PATH": str(found)},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return dict(zip(texts, json.loads(done.stdout), strict=True))


@pytest.mark.parametrize("name", [*TEXTS, *UNFINISHED])
def test_both_give_every_character_the_same_scopes(name: str, by_vscode: dict[str, list[Any]]) -> None:
    text = {**TEXTS, **UNFINISHED}[name]
    ours = _spread(text, Reader(json.loads(GRAMMAR.read_text(encoding="utf-8"))).read(text))
    theirs = _spread(text, ((a, b, tuple(scopes)) for a, b, scopes in by_vscode[name]))
    assert [c for c in range(len(text)) if text[c] != "\n" and ours[c] != theirs[c]] == []


def _spread(text: str, stretches: Any) -> list[Scoped | None]:
    found: list[Any] = [None] * len(text)
    for start, end, scopes in stretches:
        found[start:end] = [scopes] * (end - start)
    return found
