"""Are statements put in and taken out as a person would do it, whatever the layout of the text?"""

from __future__ import annotations

import pytest

from forgeplan.diagnostics.diagnostic import Edit
from forgeplan.diagnostics.source import Source
from forgeplan.dsl import syntax
from forgeplan.dsl.parser import parse
from forgeplan.dsl.rewriting import put_into, put_item, take_out

HEAD = "forge 1\nlet x = "


def value_of(body: str) -> tuple[str, syntax.Expr]:
    """A text with one `let`, and its value."""
    text = HEAD + body
    parsed = parse(Source("x.forge", text))
    assert parsed.diagnostics == []
    let = parsed.file.items[0]
    assert isinstance(let, syntax.Let)
    return text, let.value


def done(text: str, edit: Edit) -> str:
    after = text[: edit.span.start] + edit.replacement + text[edit.span.end :]
    assert parse(Source("x.forge", after)).diagnostics == []
    return after.removeprefix(HEAD)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("{}", "{ b = 2 }"),
        ("{ a = 1 }", "{ a = 1, b = 2 }"),
        ("{ a = 1, }", "{ a = 1, b = 2 }"),
        ("{ a = 1, # why\n}", "{ a = 1, b = 2, # why\n}"),
        ("{\n  a = 1\n}", "{\n  a = 1\n  b = 2\n}"),
        ("{\r\n\ta = 1 # 🚀\r\n}\r\n", "{\r\n\ta = 1 # 🚀\r\n\tb = 2\r\n}\r\n"),
        ("{\n  a = 1,\n}", "{\n  a = 1,\n  b = 2\n}"),
        ("{\n  c = 0, a = 1 }", "{\n  c = 0, a = 1, b = 2 }"),
        ("{\n  # later\n}", "{\n  # later\n  b = 2\n}"),
        ("{ a = {\n  c = 1\n} }", "{ a = {\n  c = 1\n}, b = 2 }"),
        ('{ a = "}" }', '{ a = "}", b = 2 }'),
    ],
)
def test_a_statement_goes_behind_the_last_one(before: str, after: str) -> None:
    text, record = value_of(before)
    assert isinstance(record, syntax.Record)
    assert done(text, put_into(text, record, "b = 2")) == after


@pytest.mark.parametrize(
    ("before", "index", "after"),
    [("[]", 0, "[tp]"), ("[fsdp]", 0, "[tp, fsdp]"), ("[a, b]", 1, "[a, tp, b]"), ("[\n  a\n]", 1, "[\n  a, tp\n]")],
)
def test_an_item_goes_to_its_place(before: str, index: int, after: str) -> None:
    text, items = value_of(before)
    assert isinstance(items, syntax.ListExpr)
    assert done(text, put_item(text, items, index, "tp")) == after


@pytest.mark.parametrize(
    ("before", "index", "after"),
    [
        ("{ a = 1 }", 0, "{ }"),
        ("{ a = 1, b = 2 }", 0, "{ b = 2 }"),
        ("{ a = 1, b = 2 }", 1, "{ a = 1 }"),
        ("{ a = 1, b = 2, c = 3 }", 1, "{ a = 1, c = 3 }"),
        ("{\n  a = 1\n  b = 2\n}", 0, "{\n  b = 2\n}"),
        (
            "{\n  a = 1\n\n  ## Of b.\n  # forge: allow unusual-rate\n  b = 2 # why\n  c = 3\n}",
            1,
            "{\n  a = 1\n\n  c = 3\n}",
        ),
        ("{\n  # of the record\n  a = 1,\n  b = 2\n}", 0, "{\n  # of the record\n  b = 2\n}"),
        ("{\r\n  a = 1\r\n  b = 2\r\n}", 1, "{\r\n  a = 1\r\n}"),
        ("{\n  a = 1, b = 2\n}", 1, "{\n  a = 1\n}"),
        ("{\n  a = {\n    c = 1\n  }\n  b = 2\n}", 0, "{\n  b = 2\n}"),
        ("[1, 2, 3]", 2, "[1, 2]"),
        ("[\n  1,\n  2,\n]", 0, "[\n  2,\n]"),
    ],
)
def test_a_statement_goes_with_its_comma_lines_and_doc(before: str, index: int, after: str) -> None:
    text, whole = value_of(before)
    assert isinstance(whole, syntax.Record | syntax.ListExpr)
    assert done(text, take_out(text, whole.items, index)) == after
