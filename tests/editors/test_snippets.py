"""Is what a snippet expands to of the language, where it belongs?"""

from __future__ import annotations

import json
import re

import pytest

from forgeplan.analysis import Analysis, analyse
from forgeplan.diagnostics.diagnostic import Severity
from forgeplan.editors.snippets import KINDS, STATEMENTS, component_body
from forgeplan.spec.registry import components
from tests.dsl.plans import CONTEXT
from tests.editors.texts import ROOT

FILE = ROOT / "grammar" / "vscode" / "snippets" / "forge.json"
BASE = CONTEXT.replace("partial plan context", "plan base").replace(
    "\n}\n", "\n  checkpoint = { every = 30min }\n  eval held_out { source = web, split = 1%, every = 1% }\n}\n", 1
)
AT_THE_TOP = ("let", "param", "plan extends", "partial plan", "sweep", "test")
IMPORTS = ("import", "from")
INSIDE = {"zip": "sweep s over base {\n%s\n}\n", "expect error": 'test "t" for base {\n%s\n}\n'}
"""Snippets that belong into other statements than plans, with such a statement."""

PLACES = {
    "operation": "apply = [%s]",
    "schedule": "schedule = %s",
    "optimizer": "optimizer = %s",
    "source": "sources = { web = %s }",
    "tokenizer": "tokenizer = %s",
}
_PLACE = re.compile(r"\$(?:(?P<bare>\d+)|\{(?P<n>\d+)(?::(?P<text>(?:\\.|[^}\\])*)|\|(?P<first>[^,|]*)[^|]*\|)\})")


def expanded(body: str) -> str:
    """What an editor inserts if every place is left as suggested."""
    texts = {m["n"]: re.sub(r"\\(.)", r"\1", m["first"] or m["text"] or "") for m in _PLACE.finditer(body) if m["n"]}
    assert "|" not in "".join(texts.values())
    return _PLACE.sub(lambda m: texts.get(m["n"] or m["bare"], ""), body)


def _errors(text: str) -> list[str]:
    return [f"{d.code} {d.message}" for d in _analysed(text).diagnostics if d.severity is Severity.ERROR]


def _analysed(text: str) -> Analysis:
    return analyse("plan.forge", text=text)


def test_the_plan_file_compiles_as_it_is() -> None:
    analysis = _analysed(expanded(STATEMENTS["forge"][1]))
    assert [d.message for d in analysis.errors] == []
    assert analysis.plans == ("name",)


@pytest.mark.parametrize("prefix", [prefix for prefix in STATEMENTS if prefix != "forge"])
def test_a_statement_compiles_where_it_belongs(prefix: str) -> None:
    body = expanded(STATEMENTS[prefix][1])
    if prefix in IMPORTS:
        text = BASE.replace("param ", f"{body.replace('llama3_8b', 'llama3_70b')}\n\nparam ", 1)
    elif prefix in AT_THE_TOP:
        text = f"{BASE}\n{body}\n"
    elif prefix in INSIDE:
        text = f"{BASE}\n{INSIDE[prefix] % body}"
    else:
        text = f"{BASE}\nplan example extends base {{\n{body}\n}}\n"
    assert _errors(text) == []


@pytest.mark.parametrize(("kind", "tag"), [(kind, tag) for kind in KINDS for tag in components(kind)])
def test_a_component_is_of_the_language_where_it_belongs(kind: str, tag: str) -> None:
    body = expanded(component_body(tag, components(kind)[tag]))
    found = _errors(f"{BASE}\nplan example extends base {{\n{PLACES[kind] % body}\n}}\n")
    assert [error for error in found if error[:4] in ("FP01", "FP02", "FP03")] == []


def test_every_choice_of_a_snippet_is_a_word_that_the_field_takes() -> None:
    for choice in ("full", "none", "selective", "every", "budget"):
        assert choice in component_body("recompute", components("operation")["recompute"])


def test_the_file_has_every_statement_and_component_once() -> None:
    snippets = json.loads(FILE.read_text(encoding="utf-8"))
    prefixes = [snippet["prefix"] for snippet in snippets.values()]
    assert sorted(prefixes) == sorted([*STATEMENTS, *(tag for kind in KINDS for tag in components(kind))])
    assert all(snippet["description"] and snippet["body"] for snippet in snippets.values())
