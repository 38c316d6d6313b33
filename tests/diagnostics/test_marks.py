"""Do marks stand under what they mark, and does everything stay within the width, whatever the text?

The widths of characters are compared with those of rich, which has its own tables.
"""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from forgeplan.diagnostics.cells import cells, clean, wrap
from forgeplan.diagnostics.diagnostic import Label
from forgeplan.diagnostics.render import render
from forgeplan.diagnostics.span import Span
from tests.diagnostics.places import RULE, texts

LINES = st.text(st.sampled_from('ab= {}\t"·é字訓𐐀\u200b\x1b,1'), max_size=60)
WORDS = st.text(st.sampled_from("ab 字·,"), max_size=80)


@given(LINES, st.data())
def test_marks_stand_exactly_under_their_characters(line: str, data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(line)))
    end = data.draw(st.integers(start, len(line)))
    sources = texts(plan_forge=f"first\n{line}\nlast\n")
    _, _, shown, marks, *more = render(RULE.at(Span("plan.forge", 6 + start, 6 + end), "m"), sources, 4000).split("\n")
    assert not more
    assert shown.startswith(" 2 |")
    left = _widened(line[:start], 0)
    under = _widened(line[start:end], cell_len(left))
    assert marks == "   | " + " " * cell_len(left) + "^" * max(1, cell_len(under))
    assert shown[5:] == (left + under + _widened(line[end:], cell_len(left + under))).rstrip()


@given(LINES, LINES, st.integers(40, 100), WORDS, WORDS, st.data())
def test_excerpts_stay_within_the_width(a: str, b: str, width: int, one: str, other: str, data: st.DataObject) -> None:
    text = f"{a}{b}{a}{b}\n{b}"
    ends = sorted(data.draw(st.lists(st.integers(0, len(text)), min_size=4, max_size=4)))
    sources = texts(plan_forge=text)
    found = RULE.at(Label(Span("plan.forge", *ends[:2]), one), "m", Label(Span("plan.forge", *ends[2:]), other))
    whole = max((cell_len(word) for word in f"{one} {other}".split()), default=0)
    for line in render(found, sources, width).split("\n"):
        assert cell_len(line) <= width + (whole if whole > 8 else 0)


@given(st.text(max_size=20))
def test_nothing_shown_is_invisible(text: str) -> None:
    assert all(char == "\n" or char.isprintable() or char.isspace() or char >= "\ue000" for char in clean(text))
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", clean(text))


@given(st.text(st.sampled_from("a0·é字訓。한Ａ€…→"), max_size=30))
def test_widths_are_those_that_terminals_use(text: str) -> None:
    assert cells(text) == cell_len(text)


@given(WORDS, st.integers(8, 60))
def test_wrapping_keeps_every_word_in_order(text: str, width: int) -> None:
    lines = wrap(text.lstrip(), width, "  ")
    assert " ".join(lines).split() == text.split()
    assert all(cells(line) <= width for line in lines if len(line.split()) > 1)


def test_lines_of_a_text_that_are_indented_stay_as_they_are() -> None:
    text = "write:\n    mesh = { dp_shard = 4,   dp_replicate = 2 }\nand compile it again"
    assert wrap(text, 20) == ["write:", "    mesh = { dp_shard = 4,   dp_replicate = 2 }", "and compile it again"]


def _widened(text: str, at: int) -> str:
    """A part of a line as it is printed, with tabs up to the next multiple of four cells."""
    out = ""
    for char in text:
        out += " " * (4 - (at + cell_len(out)) % 4) if char == "\t" else clean(char)
    return out
