"""Does every construct become the right tree, and every slip one message at its place?"""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

import forgeplan.dsl.tables as tables
from forgeplan.dsl import syntax
from tests.dsl.reading import clean, expression, faults, in_plan, read, repaired, statements


def test_the_shipped_tables_are_those_of_the_grammar() -> None:
    shipped = json.loads(Path(tables.__file__).with_name("tables.json").read_text())
    assert shipped == tables.generate(), "run: python -m forgeplan.dsl.tables"


def outline(expr: syntax.Expr) -> str:
    """An expression with all its brackets written."""
    match expr:
        case syntax.Binary():
            return f"({outline(expr.left)} {expr.operator} {outline(expr.right)})"
        case syntax.Unary():
            return f"({expr.operator} {outline(expr.operand)})"
        case syntax.Comparison():
            rest = "".join(f" {o} {outline(e)}" for o, e in zip(expr.operators, expr.operands[1:], strict=True))
            return f"({outline(expr.operands[0])}{rest})"
        case syntax.Member():
            return f"{outline(expr.base)}.{expr.name.text}"
        case syntax.Call():
            return f"{outline(expr.function)}({', '.join(map(outline, expr.arguments))})"
        case syntax.Index():
            return f"{outline(expr.base)}[{outline(expr.index)}]"
        case syntax.NameRef():
            return expr.name
        case syntax.Number():
            return expr.spelling
        case _:
            return type(expr).__name__


@pytest.mark.parametrize(
    ("text", "tree"),
    [
        ("a + b * c", "(a + (b * c))"),
        ("a - b - c", "((a - b) - c)"),
        ("a ** b ** c", "(a ** (b ** c))"),
        ("-a ** 2", "(- (a ** 2))"),
        ("2 ** -1", "(2 ** (- 1))"),
        ("not a == b", "(not (a == b))"),
        ("not a and b or c", "(((not a) and b) or c)"),
        ("a < b <= c + 1", "(a < b <= (c + 1))"),
        ("a in 0 .. 2 + 1", "(a in (0 .. (2 + 1)))"),
        ("- a // b % c", "(((- a) // b) % c)"),
        ("(a + b) * c", "((a + b) * c)"),
        ("f(a, b)[0].c", "f(a, b)[0].c"),
        ("a - -b", "(a - (- b))"),
    ],
)
def test_precedence(text: str, tree: str) -> None:
    assert outline(expression(text)) == tree


def test_spans_cover_exactly_what_was_written() -> None:
    text = in_plan("x = (a + b) * c.d")
    plan = clean(text).items[0]
    assert isinstance(plan, syntax.Plan)
    assign = plan.body.items[0]
    assert isinstance(assign, syntax.Assign)
    assert isinstance(assign.value, syntax.Binary)
    parts = (assign, assign.path, assign.value, assign.value.left, assign.value.right)
    assert [text[p.span.start : p.span.end] for p in parts] == [
        "x = (a + b) * c.d", "x", "(a + b) * c.d", "(a + b)", "c.d",
    ]  # fmt: skip
    assert text[assign.value.operator_span.start] == "*"


def test_words_are_keywords_only_where_their_statement_can_begin() -> None:  # C019
    items = statements("let let = 1\nlet test = 2\nlet plan = 3\nseed = let + test + plan\ny = x.for")
    assert [item.name.text for item in items if isinstance(item, syntax.Let)] == ["let", "test", "plan"]
    seed, member = items[3:]
    assert isinstance(seed, syntax.Assign)
    assert outline(seed.value) == "((let + test) + plan)"
    assert isinstance(member, syntax.Assign)
    assert outline(member.value) == "x.for"


def test_nodes_and_sources_may_have_the_names_of_keywords() -> None:  # C019
    items = statements(
        "eval test { source = error }\nsources = { error = tokens {}, let = text {} }\nwarn = 1\nassert error == 2"
    )
    assert [type(item).__name__ for item in items] == ["NodeDecl", "Assign", "Assign", "Check"]


def test_a_whole_file() -> None:
    file = clean(
        """forge 1
import "lib/hw.forge" as hw
from "std:models" import llama3_8b, debug
param lr: Rate(1e-6 .. 1e-2) = 3e-4
param names: List[Text]?
let n: Int = 4
partial plan base extends hw.base { delete eval.x, xs += [1] }
plan p { phase b after a, c.d { until = 90% }, warn n > 3 else "few", profile smoke { n = 1 } }
sweep s over p { axis lr in [1, 2]
  zip { axis a in 0 .. 1, axis b in [3, 4] }
  exclude lr > 1 and a == 0, limit = 12 runs }
test "tp divides" for p { expect model.params == 8, expect error FP0412 with { mesh.tp = 3 }
  expect error FP0413 }
"""
    )
    assert file.edition == 1
    kinds = ["Import", "FromImport", "Param", "Param", "Let", "Plan", "Plan", "Sweep", "Test"]
    assert [type(item).__name__ for item in file.items] == kinds
    sweep, test = file.items[-2:]
    assert isinstance(sweep, syntax.Sweep)
    assert [type(item).__name__ for item in sweep.items] == ["SweepAxis", "Zip", "Exclude", "Assign"]
    assert isinstance(test, syntax.Test)
    assert [type(item).__name__ for item in test.items] == ["Expect", "ExpectError", "ExpectError"]


def test_doc_and_allow_comments_go_to_the_statement_below() -> None:
    text = in_plan("# other\n## One.\n## Two.\n# forge: allow no-checkpoint, many-epochs\nseed = 1\n\n## far\n\nlr = 2")
    plan = clean(text).items[0]
    assert isinstance(plan, syntax.Plan)
    seed, rate = plan.body.items
    assert seed.doc == "One.\nTwo."
    assert [allow.text for allow in seed.allows] == ["no-checkpoint", "many-epochs"]
    assert [text[a.span.start : a.span.end] for a in seed.allows] == ["no-checkpoint", "many-epochs"]
    assert (rate.doc, rate.allows) == ("", ())


@pytest.mark.parametrize(
    ("line", "code", "place"),
    [
        ("mesh = { tp 2 }", "FP0103", "2"),
        ("seed = ", "FP0103", "="),
        ("x == 3", "FP0103", "=="),
        ("x = [a b]", "FP0103", "b"),
        ("x = f(a b, c)", "FP0103", "b"),
        ("x = {1, 2}", "FP0103", "1"),
        ("x = 8GiB tokens", "FP0103", "GiB"),
        ("x = [1,, 2]", "FP0103", ","),
        ("lr peak", "FP0103", "peak"),
        ("seed = 17 lr = 3e-4", "FP0105", "lr"),
        ("seed = 17 let b = 3", "FP0105", "let"),
        ("x = { a = 1 b = 2 }", "FP0105", "b"),
        ("mesh { tp = 2 }", "FP0106", "mesh"),
        ("optimizer adamw { lr = 1 }", "FP0106", "optimizer"),
        ("eval = held_out { source = web }", "FP0106", "eval"),
        ("eval held_out = { source = web }", "FP0106", "="),
        ("eval { source = web }", "FP0106", "eval"),
        ("optimizer = adamw { phase x { until = 1k steps } }", "FP0107", "phase x"),
        ('import "a" as b', "FP0107", "import"),
        ("axis x in [1]", "FP0107", "x"),
        ("plan q {}", "FP0107", "plan q"),
        ("seed: 17", "FP0110", ":"),
        ("seed := 17", "FP0110", ":="),
        ('"seed": 17', "FP0110", '"seed":'),
        ("[optimizer]", "FP0110", "[optimizer]"),
        ("- item", "FP0110", "-"),
        ("// comment", "FP0110", "//"),
        ("x = True", "FP0110", "True"),
        ("x = null", "FP0110", "null"),
        ("x = a ? b : c", "FP0110", "?"),
    ],
)
def test_one_slip_is_one_message_at_its_place(line: str, code: str, place: str) -> None:
    assert faults(in_plan(line)) == [(code, place)]


@pytest.mark.parametrize(
    ("wrong", "right"),
    [
        ("seed = 17 lr = 3e-4", "seed = 17\nlr = 3e-4"),
        ("mesh { tp = 2 }", "mesh = { tp = 2 }"),
        ("optimizer adamw { lr = 1 }", "optimizer = adamw { lr = 1 }"),
        ("eval = held_out { source = web }", "eval held_out { source = web }"),
        ("seed: 17", "seed = 17"),
        ("seed := 17", "seed = 17"),
        ('"seed": 17', "seed = 17"),
        ("x = True", "x = true"),
        ("x == 3", "x = 3"),
        ("x = { tp 2 }", "x = { tp = 2 }"),
        ("x = [a b]", "x = [a, b]"),
    ],
)
def test_a_fix_removes_its_fault_and_means_what_was_meant(wrong: str, right: str) -> None:
    assert clean(repaired(in_plan(wrong))) == clean(in_plan(right))


@pytest.mark.parametrize("wrong", ["mesh { tp = 2 }", "seed: 17", "optimizer adamw { lr = 1 }", "x = True"])
def test_what_was_mended_is_read_like_its_fix(wrong: str) -> None:
    assert read(in_plan(wrong)).file == clean(repaired(in_plan(wrong)))


@pytest.mark.parametrize(
    ("text", "code"),
    [("let a = 1\n", "FP0109"), ("forge 9\n", "FP0109"), ("forge 1\nforge 1\n", "FP0109"), ("", "FP0109")],
)
def test_the_edition_comes_first_and_once(text: str, code: str) -> None:
    assert [c for c, _ in faults(text)] == [code]


def test_a_broken_value_poisons_its_field_instead_of_losing_it() -> None:
    plan = read(in_plan("lr = = 3\nseed = 1")).file.items[0]
    assert isinstance(plan, syntax.Plan)
    broken, seed = plan.body.items
    assert isinstance(broken, syntax.Assign)
    assert broken.path.text == "lr"
    assert isinstance(broken.value, syntax.ErrorExpr)
    assert isinstance(seed, syntax.Assign)


def test_a_broken_header_keeps_its_plan() -> None:
    file = read("forge 1\nplan p extend q {\n  seed = 1\n  lr = 2\n}\n").file
    assert isinstance(file.items[0], syntax.Plan)
    assert len(file.items[0].body.items) == 2


def test_twenty_faults_are_twenty_messages_at_their_places() -> None:
    lines = [
        ("a1 = 17;", ";"), ("a2 = “x”", "“"), ('a3 = "x', '"'), ("a4 = { b 2 }", "2"), ("a5 = [1, 2}", "}"),
        ("a6 = 1 b6 = 2", "b6"), ("mesh { tp = 2 }", "mesh"), ("a7 = adamw { eval x {} }", "eval x"),
        ("a8 = .5", ".5"), ("a9: 17", ":"), ("b1 = = 3", "="), ("b2 = [1 2]", "2"), ("b3 = null", "null"),
        ("b4 = 0x10", "0x10"), ("b5 =", "="), ("b7 == 1", "=="), ("b8 = (1 + 2", "("), ("b9 = 1__0", "1__0"),
        ("- item", "-"), ("c1 = a ? b : c", "?"),
    ]  # fmt: skip
    text = "forge 1\nplan p {\n" + "".join(f"  {line}\n  ok_{i} = {i}\n" for i, (line, _) in enumerate(lines)) + "}\n"
    parsed = read(text)
    found = [text[f.span.start : f.span.end] for f in parsed.diagnostics if f.span]
    assert found == [place for _, place in lines]
    plan = parsed.file.items[0]
    assert isinstance(plan, syntax.Plan)
    names = [item.path.text for item in plan.body.items if isinstance(item, syntax.Assign)]
    assert [name for name in names if re.match("ok_", name)] == [f"ok_{i}" for i in range(20)]


@pytest.mark.parametrize(
    "value",
    [
        "(" * 100_000 + "1" + ")" * 100_000,
        "[" * 100_000 + "1" + "]" * 100_000,
        "{ a = " * 100_000 + "1" + "}" * 100_000,
        "not " * 100_000 + "true",
        "a" + ".b" * 100_000,
        "1" + " + 1" * 100_000,
        "if a then b else " * 20_000 + "c",
        "a" + "{}" * 20_000,
        "f" + "()" * 20_000,
    ],
    ids=["round", "square", "curly", "not", "members", "sum", "else if", "amend", "call"],
)
def test_a_hundred_thousand_levels_are_exactly_one_message(value: str) -> None:  # C002
    assert [code for code, _ in faults(in_plan(f"seed = {value}"))] == ["FP0112"]


def test_fifty_levels_are_fine() -> None:  # C002
    assert statements("seed = " + "(" * 50 + "1" + ")" * 50) == statements("seed = 1")


def test_a_file_above_the_bound_is_refused_unread() -> None:
    assert [code for code, _ in faults("#" * (16 * 2**20 + 1))] == ["FP0112"]


def test_tabs_count_as_one_character() -> None:  # C004
    parsed = read(in_plan("optimizer = adamw {\n\t\tlearing rate = 3e-4\n}"))
    (fault,) = parsed.diagnostics
    assert fault.span is not None
    from forgeplan.diagnostics.source import Source

    assert Source("t", in_plan("optimizer = adamw {\n\t\tlearing rate = 3e-4\n}")).position(fault.span.start) == (4, 16)
