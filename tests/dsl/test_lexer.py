"""Are characters, numbers, strings, newlines and comments read as the language says?"""

from __future__ import annotations

from fractions import Fraction

import pytest

from forgeplan.dsl import syntax
from forgeplan.dsl.lexer import lex
from tests.dsl.reading import clean, expression, faults, in_plan, read, repaired, statements


@pytest.mark.parametrize(
    ("spelling", "amount", "unit"),
    [
        ("0", 0, None),
        ("11_008", 11008, None),
        ("5e-4", Fraction(1, 2000), None),
        ("1.0", 1, None),
        ("85%", 85, "%"),
        ("7B", 7 * 10**9, None),
        ("2.1M", 2_100_000, None),
        ("2k", 2000, None),
        ("4Ki", 4096, None),
        ("2Mi tokens", 2**21, "tokens"),
        ("8GiB", 8, "GiB"),
        ("8GB", 8, "GB"),
        ("30min", 30, "min"),
        ("72h", 72, "h"),
        ("989TFLOP/s", 989, "TFLOP/s"),
        ("900GB/s", 900, "GB/s"),
        ("1 sequence", 1, "sequence"),
        ("9_223_372_036_854_775_809", 2**63 + 1, None),  # C003
    ],
)
def test_a_number_is_exact_and_keeps_its_unit(spelling: str, amount: int | Fraction, unit: str | None) -> None:
    number = expression(spelling)
    assert isinstance(number, syntax.Number)
    assert (number.amount, number.unit) == (amount, unit)
    assert not isinstance(number.amount, float)


def test_per_cent_binds_only_right_after_a_digit() -> None:
    assert isinstance(expression("10 % 3"), syntax.Binary)
    assert isinstance(expression("10%"), syntax.Number)


def test_a_range_needs_no_spaces() -> None:
    assert expression("0..2") == expression("0 .. 2")


@pytest.mark.parametrize(
    ("wrong", "right"),
    [(".5e-3", "0.5e-3"), ("5.", "5"), ("1__0", "1_0"), ("1_", "1"), ("007", "7"), ("0x1F", "31"), ("0b101", "5")],
)
def test_a_malformed_number_is_one_fault_with_its_usual_spelling(wrong: str, right: str) -> None:
    text = in_plan(f"seed = {wrong}")
    assert faults(text) == [("FP0108", wrong)]
    assert repaired(text) == in_plan(f"seed = {right}")


@pytest.mark.parametrize("wrong", ["1.2.3", "1e5e3", "1e", "1e+"])
def test_two_points_or_exponents_are_malformed(wrong: str) -> None:
    assert [code for code, _ in faults(in_plan(f"seed = {wrong}"))] == ["FP0108"]


def test_a_huge_exponent_is_refused_before_it_is_computed() -> None:
    assert faults(in_plan("seed = 1e999999999")) == [("FP0112", "1e999999999")]


def test_brackets_and_quotes_in_comments_and_strings_are_text() -> None:  # C010
    items = statements('seed = 1 # it\'s "odd { [ (\npath = "a } b # c"')
    assert isinstance(items[1], syntax.Assign)
    assert items[1].value == expression('"a } b # c"')
    assert expression('"a } b # c"').parts == ("a } b # c",)  # type: ignore[attr-defined]


def test_escapes_are_resolved_and_unknown_ones_reported() -> None:
    text = expression(r'"a\n\t\"\\\$ \u{202E}"')
    assert isinstance(text, syntax.Text)
    assert text.parts == ('a\n\t"\\$ \u202e',)
    assert faults(in_plan(r'path = "a \d"')) == [("FP0102", r"\d")]


def test_a_string_may_stand_inside_an_expression_of_a_string() -> None:  # C011
    source = 'path = "runs/${if plan.name == "a" then "x" else "y"}/z"'
    assign = statements(source)[0]
    assert isinstance(assign, syntax.Assign)
    assert isinstance(assign.value, syntax.Text)
    before, inner, after = assign.value.parts
    assert (before, after) == ("runs/", "/z")
    assert isinstance(inner, syntax.Conditional)
    # The span of the inner `plan.name` is a place of the file.
    text = in_plan(source)
    condition = inner.condition
    assert isinstance(condition, syntax.Comparison)
    span = condition.operands[0].span
    assert text[span.start : span.end] == "plan.name"


def test_a_fault_inside_a_string_has_its_place_in_the_file() -> None:
    assert faults(in_plan('path = "a/${b c}"')) == [("FP0103", "c")]


def test_a_block_string_keeps_its_lines() -> None:
    text = expression('"""\none # no comment\n  "two"\n"""')
    assert isinstance(text, syntax.Text)
    assert text.parts == ('one # no comment\n  "two"\n',)


def test_an_unclosed_string_is_guessed_to_end_before_the_brackets_of_its_line() -> None:
    text = in_plan('sources = { web = tokens { path = "a/*.npy } }\nseed = 1')
    assert faults(text) == [("FP0102", '"')]
    assert repaired(text) == in_plan('sources = { web = tokens { path = "a/*.npy" } }\nseed = 1')


def test_an_unclosed_block_string_is_the_only_fault() -> None:
    assert faults(in_plan('path = """abc')) == [("FP0102", '"""')]


@pytest.mark.parametrize("piece", ['a\\"${', 'a\\\\"${'])
def test_a_megabyte_of_openings_without_an_end_is_one_fault(piece: str) -> None:  # C009
    parsed = read('forge 1\nlet path = "' + piece * (2**20 // len(piece)) + "\n")
    assert [fault.code for fault in parsed.diagnostics] == ["FP0102"]


def test_the_fault_of_an_unclosed_string_is_at_its_opening_quote() -> None:  # C009
    text = 'forge 1\nlet path = "' + 'a\\"${' * 1000 + "\n"
    span = read(text).diagnostics[0].span
    assert span is not None
    assert span.start == text.index('"')


@pytest.mark.parametrize(
    ("wrong", "character", "right"),
    [
        ("seed = 17;", ";", "seed = 17"),
        ("seed = 17; lr = 3", ";", "seed = 17\nlr = 3"),
        ("path = “a b”", "“", 'path = "a b"'),
        ("path = 'a b'", "'", 'path = "a b"'),
        ("x = 3 – 2", "–", "x = 3 - 2"),
        ("x\u00a0= 1", "\u00a0", "x = 1"),
        ("x = a && b", "&&", "x = a and b"),
        ("x = ！a", "！", "x = not a"),
        ("x = 2 × 3", "×", "x = 2 * 3"),
    ],
)
def test_a_look_alike_is_one_fault_whose_fix_writes_what_was_meant(wrong: str, character: str, right: str) -> None:
    assert faults(in_plan(wrong)) == [("FP0101", character)]
    if "！" not in wrong:
        assert clean(repaired(in_plan(wrong))) == clean(in_plan(right))


def test_a_letter_outside_ascii_is_one_fault_for_the_word() -> None:
    assert [code for code, _ in faults(in_plan("grün = 1"))] == ["FP0101"]


@pytest.mark.parametrize("hidden", ["\u202e", "\u200b", "\0", "\u2066", "\u00ad", "\udcff"])
def test_invisible_characters_are_refused_everywhere(hidden: str) -> None:
    for line in (f"seed = 1{hidden}7", f'path = "a{hidden}b"', f"seed = 1  # a{hidden}b"):
        assert faults(in_plan(line)) == [("FP0111", hidden)]


def test_a_byte_order_mark_at_the_very_start_is_no_fault() -> None:
    assert clean("\ufeff" + in_plan("seed = 1")) == clean(in_plan("seed = 1"))


def test_windows_newlines_change_nothing() -> None:
    text = in_plan('seed = 1  # a\npath = "b"')
    windows = read(text.replace("\n", "\r\n"))
    assert windows.file == clean(text)
    assert [c.text for c in windows.comments] == ["# a"]


@pytest.mark.parametrize(
    "lines",
    [
        "x = [\n1,\n2\n]",
        "x = (1\n+ 2)",
        "x = 1 +\n2",
        "x =\n1",
        'assert a\n  else "b"',
        "x = if a\nthen b\nelse c",
        "x = a\n  .b",
        "x = a\n  == b",
        "x = a\nand b",
        "x = adamw\n{ lr = 1 }",
        "x = { a = 1\n, b = 2 }",
    ],
)
def test_a_newline_that_cannot_end_a_statement_does_not(lines: str) -> None:
    assert len(statements(lines)) == 1


def test_newlines_and_commas_separate_in_braces() -> None:
    assert statements("x = 1\ny = 2") == statements("x = 1, y = 2") == statements("x = 1,\n\n\ny = 2,")


def test_tokens_tile_the_text() -> None:
    text = in_plan('x = a.b["c"] ** 2  # end\ny = 4Ki tokens')
    lexed = lex("t.forge", text)
    pieces = sorted(
        [(t.span.start, t.span.end) for t in lexed.tokens] + [(c.span.start, c.span.end) for c in lexed.comments]
    )
    gaps = [text[a:b] for a, b in zip([0, *(e for _, e in pieces)], [*(s for s, _ in pieces), len(text)], strict=True)]
    assert not "".join(gaps).strip()
