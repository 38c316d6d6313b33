"""Does a missing, extra or wrong bracket give one message, a place by indentation, and a fix?"""

from __future__ import annotations

import re

import pytest

from tests.dsl.reading import clean, faults, read, repaired

PLAN = """forge 1

plan p {
  seed      = 17
  optimizer = adamw { lr = 3e-4, betas = [0.9, 0.95] }
  sources = {
    web  = text { path = "a.txt" }
    code = text { path = "b.txt" }
  }
  apply = [
    fsdp,
    recompute { mode = full },
  ]
  budget = { steps = min(20, 30) }

  profile smoke {
    seed = 1
  }
  assert seed <= 20
}

let n = (1 + 2) * 3
"""
BRACKETS = [match.start() for match in re.finditer(r"[()\[\]{}]", PLAN)]
LINES = PLAN.split("\n")


def line_of(offset: int) -> int:
    return PLAN.count("\n", 0, offset)


@pytest.mark.parametrize("at", BRACKETS, ids=lambda at: f"{PLAN[at]} of line {line_of(at) + 1}")
def test_a_deleted_bracket_is_found(at: int) -> None:
    text = PLAN[:at] + PLAN[at + 1 :]
    found = [fault for fault in read(text).diagnostics if fault.code == "FP0104"]
    assert len(found) == 1, found
    lines = [text.count("\n", 0, label.span.start) for label in found[0].labels]
    assert any(abs(line - line_of(at)) <= 1 for line in lines)


CLOSERS = [at for at in BRACKETS if PLAN[at] in ")]}"]


@pytest.mark.parametrize("at", CLOSERS, ids=lambda at: f"{PLAN[at]} of line {line_of(at) + 1}")
def test_the_fix_of_a_missing_closer_restores_the_meaning(at: int) -> None:
    text = PLAN[:at] + PLAN[at + 1 :]
    assert [code for code, _ in faults(text)] == ["FP0104"]
    fixed = repaired(text)
    if PLAN[at] != ")":
        assert clean(fixed) == clean(PLAN)
    else:
        assert not faults(fixed)


@pytest.mark.parametrize("at", BRACKETS, ids=lambda at: f"{PLAN[at]} of line {line_of(at) + 1}")
def test_a_doubled_bracket_is_found_on_its_line(at: int) -> None:
    text = PLAN[:at] + PLAN[at] + PLAN[at:]
    parsed = read(text)
    assert parsed.diagnostics
    for fault in parsed.diagnostics:
        lines = [text.count("\n", 0, label.span.start) for label in fault.labels]
        assert any(abs(line - line_of(at)) <= 1 for line in lines), fault


@pytest.mark.parametrize(
    ("wrong", "right"),
    [
        ("betas = [0.9, 0.95} }", "betas = [0.9, 0.95] }"),
        ("betas = {0.9, 0.95] }", "betas = [0.9, 0.95] }"),
        ("betas = [0.9, 0.95) }", "betas = [0.9, 0.95] }"),
    ],
)
def test_a_wrong_bracket_is_exchanged(wrong: str, right: str) -> None:
    text = PLAN.replace("betas = [0.9, 0.95] }", wrong)
    assert [code for code, _ in faults(text)] == ["FP0104"]
    assert clean(repaired(text)) == clean(PLAN)
    assert right in PLAN


def test_both_ends_are_labelled() -> None:
    text = PLAN.replace("0.95] }", "0.95 }")
    (fault,) = read(text).diagnostics
    assert [text[label.span.start : label.span.end] for label in fault.labels] == ["[", ""]
    assert fault.labels[0].text == "opened here"
    assert text[: fault.labels[1].span.start].endswith("0.95")


def test_a_balanced_file_is_never_touched_however_it_is_indented() -> None:
    flat = "\n".join(line.strip() for line in PLAN.split("\n"))
    assert clean(flat) == clean(PLAN)


def test_three_broken_blocks_are_three_messages() -> None:
    text = PLAN.replace("0.95] }", "0.95 }").replace('"a.txt" }', '"a.txt"').replace("(1 + 2)", "(1 + 2")
    assert [code for code, _ in faults(text)] == ["FP0104"] * 3
