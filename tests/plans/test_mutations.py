"""Does one changed token of a shipped plan give few messages near it, never a traceback, however far the plan gets?"""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest
from attrs import frozen

from forgeplan.analysis import analyse
from forgeplan.diagnostics.diagnostic import Diagnostic
from forgeplan.diagnostics.formats import render_all
from forgeplan.dsl.lexer import lex
from tests.plans.test_shipped import NAMES, path_of

MUTATIONS = 500


@frozen
class Outcome:
    text: str
    line: int
    faults: tuple[Diagnostic, ...]

    @property
    def is_near(self) -> bool:
        """Whether every message has a label within one line of the change."""
        return all(any(abs(self._line(label.span.start) - self.line) <= 1 for label in f.labels) for f in self.faults)

    def _line(self, offset: int) -> int:
        return self.text.count("\n", 0, offset)


def outcomes(name: str) -> Iterator[Outcome]:
    """What is reported for seeded deletions, doublings, replacements and insertions of one token."""
    path = path_of(name)
    text = path.read_text(encoding="utf-8")
    rng = random.Random(17)
    tokens = [token for token in lex(name, text).tokens if token.kind != "NL"]
    for _ in range(MUTATIONS):
        token, other = rng.choice(tokens), rng.choice(tokens).text
        start, end = token.span.start, token.span.end
        put = rng.choice(["", f"{token.text} {token.text}", other, f"{other} {token.text}"])
        changed = text[:start] + put + text[end:]
        analysis = analyse(str(path), text=changed)
        assert render_all(analysis.diagnostics, analysis.sources) or not analysis.diagnostics
        yield Outcome(changed, changed.count("\n", 0, start), analysis.diagnostics)


@pytest.mark.parametrize("name", NAMES)
def test_one_changed_token_gives_few_messages_close_to_it(name: str) -> None:
    faulty = [outcome for outcome in outcomes(name) if outcome.faults]
    counts = sorted(len(outcome.faults) for outcome in faulty)
    assert len(faulty) >= MUTATIONS // 2
    assert sum(counts) / len(counts) <= 1.4
    assert counts[len(counts) * 95 // 100] <= 4
    assert sum(outcome.is_near for outcome in faulty) / len(faulty) >= 0.97
