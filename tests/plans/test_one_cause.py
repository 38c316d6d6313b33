"""Does one mistake give one message, through language and compiler, and does every message have a place?"""

from __future__ import annotations

import pytest

from forgeplan.analysis import Analysis, analyse
from tests.dsl.plans import CONTEXT


def analysis(body: str, *overrides: str, top: str = "") -> Analysis:
    """Of a plan `example` that extends the context, with `top` before it."""
    text = f"{CONTEXT}{top}\nplan example extends context {{\n{body}\n}}\n"
    return analyse("plan.forge", text=text, plan="example", overrides=overrides)


def codes(body: str, *overrides: str, top: str = "") -> list[str]:
    return [d.code for d in analysis(body, *overrides, top=top).diagnostics]


@pytest.mark.parametrize(
    "body",
    [
        "mesh = { dp_shard = 4, tpp = 2 }",
        "budget = { epochs = 1 }",
        "schedule = cosine { warmup = 3%, decayed = 1e-5 }",
        "batch = { global = 2Mi tokens, micro = 4 sequences, length = 4Ki tokens, packed = true }",
    ],
)
def test_a_record_with_an_unknown_key_is_judged_by_nothing_that_it_leaves_out(body: str) -> None:
    assert codes(body) == ["FP0301"]


def test_an_unknown_key_of_the_plan_itself_silences_no_default() -> None:
    assert codes("ssed = 3\nmesh = { dp_shard = 3 }") == ["FP0301", "FP0401"]


def test_a_fault_of_what_nobody_wrote_stands_at_the_name_of_the_plan() -> None:
    found = analysis("budget = {}")
    (fault,) = found.diagnostics
    assert (fault.code, [label.span.file for label in fault.labels]) == ("FP0902", ["plan.forge"])


def test_a_sink_that_is_named_twice_is_refused() -> None:
    assert codes("metrics.sinks = [tensorboard, tensorboard]") == ["FP0441"]


@pytest.mark.parametrize(
    "top",
    [
        "import  as mine",
        'import "std:models" as mine mine',
        'micro "std:clusters" import mine',
        'from "std:clusters" import ',
        "let mine mine = 3",
        "mine = 3",
        "param : Rate(1e-5 .. 1e-1) = 3e-3",
    ],
)
def test_a_name_that_an_unreadable_statement_may_declare_is_no_second_fault(top: str) -> None:
    found = analysis("optimizer.lr = mine", top=top)
    assert "FP0201" not in [d.code for d in found.diagnostics]
    assert found.diagnostics


def test_a_name_that_stands_in_no_unreadable_statement_is_unknown() -> None:
    assert codes("optimizer.lr = mine", top="other = 3") == ["FP0107", "FP0201"]
    assert codes("optimizer.lr = mine", top="let other = = 3") == ["FP0103", "FP0201"]


TWO = 'sources.other = text { path = "b/*.txt" }\n'


@pytest.mark.parametrize(
    "body",
    [
        TWO + "= { web = 100% }",
        TWO + "mixture mixture = { web = 100% }",
        TWO + "mixture = { web = 100% }\neval a a { source = other, every = 3 steps }",
        TWO + "mixture = { web = 100% }\na { source = other, every = 3 steps }",
        "eval a a { source = web, split = 1%, every = 3 steps }\ndelete eval.a",
    ],
)
def test_what_an_unreadable_statement_of_the_plan_may_say_is_not_missing(body: str) -> None:
    found = [d.code for d in analysis(body).diagnostics]
    assert found
    assert not {"FP0602", "FP0608", "FP0304", "unused-source"} & set(found)
