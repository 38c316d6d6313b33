"""Does the formatter keep meaning and comments of plans that nobody wrote, whatever their layout?

Every construct of the grammar is drawn, with space, line ends and comments at any place where they may stand.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, given, settings

from forgeplan.dsl.formatter import format_text
from forgeplan.dsl.formatter_lines import WIDTH, width
from forgeplan.dsl.lexer import lex
from forgeplan.dsl.tokens import Tokens
from tests.dsl.fuzzing import of_gaps, seed_of, seeds
from tests.dsl.plan_texts import plan_texts
from tests.dsl.reading import clean, read
from tests.dsl.test_mutations import DENSE, FAMILY

BIG = """forge 1

## A plan with what the language has besides.
plan everything {
  loss      = cross_entropy { z = 1e-4, chunk = 4Ki tokens }
  mesh      = { tp = 2, cp = 2 }   # cp brings its transform
  apply = [
    tp { sequence = true },
    fp8 { recipe = rowwise, exclude = ["head"] },
    recompute { mode = selective }, compile,
  ]
  budget = { tokens = 6B tokens, wall = 72h }
  phase main   { until = 90% }
  phase anneal after main { mixture = { web = 40%, code = 60% }, lr_scale = 50% }
  checkpoint = { every = 30min, keep = 3, async = pinned }

  assert checkpoint.every <= 1h
    else "this queue preempts without notice"
  profile smoke {
    batch.global = 64Ki tokens
    delete eval.held_out
  }
}

sweep scan over everything {
  axis peak_lr in [1e-4, 2e-4, 3e-4, 6e-4]
  zip { axis a in 0 .. 2, axis b in [for x in 0 .. 2: x * 2] }
  exclude peak_lr > 3e-4 and seed > 0
  limit = 12 runs
}
"""


WHOLE = [seed.text for seed in seeds() if not read(seed.text).diagnostics]


def holds_what_a_form_promises(text: str) -> None:
    """Tree, comments and their places stay; the form is its own form, and 100 columns wide."""
    once = format_text(text)
    assert clean(once) == clean(re.sub(r"\b1((?:\s|#.*\n)+)(sequence|step)s\b", r"1\1\2", text))
    assert [*comments(once)] == [*comments(text)]
    assert format_text(once) == once
    assert [line for line in once.split("\n") if not fits(line)] == []
    assert not any(line != line.rstrip() for line in outside_of_strings(once))


def comments(text: str) -> Iterator[tuple[str, bool, int]]:
    """Each with whether it stands alone, and how many tokens before it; commas and line ends come and go."""
    tokens = read(text).raw
    starts = [s for s, kind in zip(tokens.starts, tokens.kinds, strict=True) if kind not in ("NL", "COMMA", "$END")]
    for comment in read(text).comments:
        yield comment.text.rstrip(), comment.alone, sum(start < comment.span.start for start in starts)


def outside_of_strings(text: str) -> list[str]:
    tokens = lex("text", text).tokens
    for start, end, kind in zip(tokens.starts, tokens.ends, tokens.kinds, strict=True):
        if kind == "STRING":
            text = text[:start] + text[start:end].replace(" \n", "x\n") + text[end:]
    return text.split("\n")


def fits(line: str) -> bool:
    """Whether a line has 100 columns, or cannot be broken: a comment, or one string with what belongs to it."""
    lexed = lex("line", line)
    code = line[: lexed.comments[0].span.start].rstrip() if lexed.comments else line
    return width(code) <= WIDTH or _has_a_long_string(lexed.tokens) or not lexed.tokens.kinds


def _has_a_long_string(tokens: Tokens) -> bool:
    return any(
        kind == "STRING" and end - start > WIDTH // 2
        for start, end, kind in zip(tokens.starts, tokens.ends, tokens.kinds, strict=True)
    )


def scattered(text: str, rng: random.Random, changes: int) -> str:
    """The text with other gaps between its tokens, as far as it still parses."""
    for _ in range(changes):
        changed = of_gaps(seed_of("text", text), rng)
        if not read(changed).diagnostics:
            text = changed
    return text


@settings(max_examples=1_000, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
@given(plan_texts())
def test_a_thousand_drawn_plans_keep_meaning_and_comments_and_are_stable(text: str) -> None:  # C007, C008
    holds_what_a_form_promises(scattered(text, random.Random(text), 3))


@pytest.mark.parametrize("number", range(len(WHOLE)))
def test_shipped_plans_and_modules_do_in_any_layout(number: int) -> None:  # C007, C008
    rng = random.Random(number)
    for _ in range(3):
        holds_what_a_form_promises(scattered(WHOLE[number], rng, 8))


@pytest.mark.parametrize("text", [DENSE, FAMILY, BIG], ids=["dense", "family", "big"])
def test_plans_with_every_construct_do_in_any_layout(text: str) -> None:
    rng = random.Random(text)
    holds_what_a_form_promises(text)
    for _ in range(10):
        holds_what_a_form_promises(scattered(text, rng, 8))


def test_a_plan_of_two_thousand_lines_does() -> None:
    rng = random.Random(1)
    blocks = [text.removeprefix("forge 1\n") for text in WHOLE]
    text = "forge 1\n"
    while text.count("\n") < 2_000:
        block = scattered("forge 1\n" + rng.choice(blocks), rng, 6).removeprefix("forge 1\n")
        if not read(text + block + "\n").diagnostics:
            text += block + "\n\n"
    holds_what_a_form_promises(text)
