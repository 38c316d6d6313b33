"""Is no key of a shipped plan taken in silence under another name, and is the one that was meant offered?"""

from __future__ import annotations

import random

import pytest

from forgeplan.analysis import analyse
from forgeplan.diagnostics.diagnostic import Diagnostic
from forgeplan.diagnostics.source import Source
from forgeplan.dsl import syntax
from forgeplan.dsl.parser import parse
from tests.dsl.test_fields import typos
from tests.plans.test_shipped import NAMES, path_of

OWN = {"sources", "mixture"}
"""Maps whose names are the author's."""


def text_of(name: str) -> str:
    return path_of(name).read_text(encoding="utf-8")


def keys(text: str) -> list[syntax.Name]:
    """The keys of all assignments inside plans that stand for fields."""
    found: list[syntax.Name] = []
    stack: list[tuple[syntax.Node, bool]] = [(parse(Source("plan", text)).file, False)]
    while stack:
        node, is_own = stack.pop()
        owns = False
        if isinstance(node, syntax.Assign) and not is_own:
            found.append(node.path.names[-1])
            owns = node.path.names[-1].text in OWN
        stack += [(child, owns or (is_own and not isinstance(node, syntax.Assign))) for child in syntax.children(node)]
    return found


def renamed(name: str, key: syntax.Name, other: str) -> tuple[Diagnostic, ...]:
    text = text_of(name)
    return analyse(str(path_of(name)), text=text[: key.span.start] + other + text[key.span.end :]).diagnostics


@pytest.mark.parametrize("name", NAMES)
def test_any_renamed_key_is_an_error_at_its_place(name: str) -> None:
    """Quality 1 of the language."""
    found = keys(text_of(name))
    assert len(found) >= 15
    for key in found:
        other = f"{key.text}_zz"
        errors = [d for d in renamed(name, key, other) if d.severity.value == "error"]
        places = [(d.span.start, d.span.end) for d in errors if d.span is not None]
        assert (key.span.start, key.span.start + len(other)) in places, (key.text, errors)


def test_single_slips_of_keys_of_shipped_plans_get_the_right_suggestion() -> None:
    """Quality 1 of the language: at least 95 %."""
    rng = random.Random(2)
    right = wrong = 0
    for name in NAMES:
        for key in {key.text: key for key in keys(text_of(name)) if len(key.text) >= 4}.values():
            typo = rng.choice(sorted(typos(key.text, rng)))
            found = renamed(name, key, typo)
            if not found:
                continue  # the slip is another field, and is told by the types if at all
            told = " ".join((*found[0].help, *(fix.title for d in found for fix in d.fixes)))
            right, wrong = (right + 1, wrong) if f"`{key.text}`" in told else (right, wrong + 1)
    assert right + wrong >= 60
    assert right / (right + wrong) >= 0.95
