"""What are the values of expressions, exactly?"""

from __future__ import annotations

from fractions import Fraction
from math import isqrt, log2

import pytest

from forgeplan.dsl.units import show_quantity
from forgeplan.spec.quantity import BYTES, NUMBER, SECONDS, SHARE, STEPS, TOKENS, Quantity
from tests.dsl.plans import CONTEXT, at, codes, extended, job_of, only, read


def number(expression: str, top: str = "") -> object:
    """The value of an expression as an exact number."""
    return job_of(f"model.rope.theta = {expression}", top=top).leaves["model.rope.theta"].value


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("1 + 2 * 3", 7),
        ("2 ** 3 ** 2", 2**9),
        ("(0 - 2) ** 2", 4),
        ("7 // 2", 3),
        ("7 % 4", 3),
        ("1 / 3 + 1 / 6", Fraction(1, 2)),
        ("0.1 + 0.2", Fraction(3, 10)),
        ("3e-4 * 1e4", 3),
        ("2 ** -2", Fraction(1, 4)),
        ("11_008", 11008),
        ("4Ki", 4096),
        ("7B", 7 * 10**9),
        ("2.1M", 2_100_000),
        ("64Ki tokens / 1Ki tokens", 64),
        ("50% * 4", None),
        ("8GiB / 1GiB", 8),
        ("72h / 1min", 4320),
        ("min(3, 1, 2)", 1),
        ("max([3, 1, 2])", 3),
        ("sum([for x in 1 .. 4: x * x])", 30),
        ("sum([for x in 1 .. 10 if x % 2 == 0: x])", 30),
        ("len([1, 2, 3])", 3),
        ("len(0 .. 4)", 5),
        ("ceil(7 / 2) + floor(7 / 2) + round(5 / 2)", 4 + 3 + 2),
        ("sqrt(144 / 25)", Fraction(12, 5)),
        ("log2(1_024)", 10),
        ("log2(1 / 8) + 5", 2),
        ("[10, 20, 30][1]", 20),
        ("[10, 20, 30][-1]", 30),
        ("if 1 < 2 <= 2 then 5 else 6", 5),
        ("if 3 in [1, 2] or 3 in 0 .. 5 then 1 else 2", 1),
        ("if not true and false then 1 else 2", 2),
        ("if bf16 == bf16 and fp32 != bf16 then 1 else 2", 1),
        ("if model.tie == false then 1 else 2", 1),
        ("len([1] + [2, 3])", 3),
        ("-(-5)", 5),
    ],
)
def test_numbers_are_exact(expression: str, value: object) -> None:
    if value is None:
        assert only(extended(f"model.rope.theta = {expression}")).code == "FP0308"
    else:
        assert number(expression) == value


def test_roots_and_logarithms_are_correct_to_far_more_than_a_float() -> None:
    root = number("sqrt(2)")
    assert isinstance(root, Fraction)
    assert root == Fraction(isqrt(2 << 128), 1 << 64)
    assert abs(float(number("log2(3)")) - log2(3)) < 1e-15
    assert abs(float(number("log2(1e-5) + 20")) - (log2(1e-5) + 20)) < 1e-14


@pytest.mark.parametrize("tokens", [2**63, 2**64, 2**63 - 1, 2**63 + 1])
def test_large_integers_stay_exact(tokens: int) -> None:
    """Case C003."""
    assert job_of(f"budget.tokens = {tokens:_} tokens").leaves["budget.tokens"].value == tokens


@pytest.mark.parametrize(
    ("expression", "part"),
    [
        ("4 tokens + 2 steps", "tokens against steps"),
        ("1GiB - 1min", "bytes against seconds"),
        ("1 / 0", "divides by zero"),
        ("1 % 0", "divides by zero"),
        ("0 ** -1", "divides by zero"),
        ("2 ** 0.5", "`sqrt(x)`"),
        ("[1, 2][2]", "no item 2 in a list of 2"),
        ("1[0]", "only a list has items"),
        ("if 1 then 2 else 3", "a condition is true or false"),
        ('"a" + "b"', "is not defined for a text and a text"),
        ("1 < bf16", "compares numbers"),
        ("true + 1", "is not defined for `true`"),
        ("mini(1)", "`mini` is no function"),
        ("min()", "takes at least one argument"),
        ("sqrt(0 - 1)", "of a negative number"),
        ("log2(0)", "not above zero"),
        ("[for x in 3: x]", "a list or a range is wanted"),
        ("1 in 2", "`in` looks into a list"),
        ("(5).x", "has no member `x`"),
        ("4 tokens == 4 steps", "no common measure"),
    ],
)
def test_an_operation_without_result_says_why(expression: str, part: str) -> None:
    loaded = extended(f"let k = {expression}")
    fault = only(loaded)
    assert fault.code == "FP0313"
    assert part in " ".join([fault.message, *fault.help])


@pytest.mark.parametrize(
    "expression",
    [
        "10 ** 10 ** 10",
        "2 ** 5_000",
        "(2 ** 4_000) * (2 ** 4_000)",
        "[for x in 0 .. 1_000_000: x]",
        "[for x in 0 .. 10 ** 15: x]",
        "1 ** (2 ** 100)",
        "(1 / 3) ** 100_000",
    ],
)
def test_what_would_grow_without_bound_is_refused_before_it_is_computed(expression: str) -> None:
    """Quality 11 of the language."""
    loaded = extended(f"let k = {expression}")
    assert only(loaded).code == "FP0314"


def test_texts_lists_and_operations_are_bounded() -> None:
    doubling = 'let t0 = "xxxxxxxxxxxxxxxx"\n' + "".join(
        f'let t{i} = "${{t{i - 1}}}${{t{i - 1}}}"\n' for i in range(1, 40)
    )
    assert codes(extended("", top=doubling)) == ["FP0314"]
    rounds = "let big = [for x in 0 .. 60_000: x * x + 1]\nlet more = [for a in 0 .. 30: [for b in big: a + b]]\n"
    assert codes(extended("", top=rounds)) == ["FP0314"]


def test_repeated_references_do_not_grow_exponentially() -> None:
    """Case C014."""
    lets = "let x0 = 1\n" + "".join(f"let x{i} = x{i - 1} + x{i - 1}\n" for i in range(1, 301))
    assert job_of("seed = x300", top=lets).leaves["seed"].value == 2**300
    backwards = "".join(f"let y{i} = y{i + 1} + y{i + 1}\n" for i in range(300)) + "let y300 = 1\n"
    assert job_of("seed = y0", top=backwards).leaves["seed"].value == 2**300


def test_references_that_nest_too_deep_are_one_error() -> None:
    lets = "".join(f"let y{i} = y{i + 1} + 1\n" for i in range(5_000)) + "let y5000 = 1\n"
    loaded = extended("seed = y0", top=lets)
    assert only(loaded).code == "FP0314"


def test_texts_take_values_bare() -> None:
    job = job_of(
        'let kind = "a"\nsources.web.path = "${kind}/${model.layers}-${batch.length}-${optimizer.lr}-'
        "${precision.compute}-"
        '${if plan.name == "example" then "x" else "y"}.txt"'
    )
    assert job.leaves["sources.web.path"].value == "a/32-4096-3e-4-bf16-x.txt"


def test_run_names_and_folders_can_be_read() -> None:
    job = job_of('checkpoint = { every = 1h, path = "${run.dir}/deep" }\nprofile p {}', profile="p")
    assert job.name == "example@p"
    assert job.derived["run.dir"] == "runs/example@p"
    assert job.leaves["checkpoint.path"].value == "runs/example@p/deep"


def test_a_let_that_nobody_reads_is_checked_all_the_same() -> None:
    assert codes(extended("let k = 1 / 0")) == ["FP0313"]
    assert codes(extended("profile p { let k = 1 / 0 }")) == ["FP0313"]
    assert codes(read(CONTEXT + "let k = 1 / 0\n")) == ["FP0313"]
    assert codes(extended("model = llama3_8b { let k = 1 / 0, context = 4Ki tokens }")) == ["FP0313"]


def test_two_faults_in_one_expression_are_both_found_and_nothing_follows_from_them() -> None:
    loaded = extended("optimizer.betas = [aaa, bbb]\nseed = floor(optimizer.betas[0])\nassert seed == 1")
    assert [(d.code, at(loaded, d)) for d in loaded.diagnostics] == [("FP0201", "aaa"), ("FP0201", "bbb")]


@pytest.mark.parametrize(
    ("quantity", "text"),
    [
        (Quantity(2**21, TOKENS), "2Mi tokens"),
        (Quantity(160 * 10**9, TOKENS), "160B tokens"),
        (Quantity(1, STEPS), "1 step"),
        (Quantity(1500, STEPS), "1500 steps"),
        (Quantity(8 * 2**30, BYTES), "8GiB"),
        (Quantity(8 * 10**9, BYTES), "8GB"),
        (Quantity(1800, SECONDS), "30min"),
        (Quantity(Fraction(17, 20), SHARE), "85%"),
        (Quantity(Fraction(3, 10_000), NUMBER), "3e-4"),
        (Quantity(Fraction(-19, 20), NUMBER), "-0.95"),
        (Quantity(8_030_261_248, NUMBER), "8_030_261_248"),
        (Quantity(Fraction(1, 3), NUMBER), "1/3"),
    ],
)
def test_values_are_shown_as_a_plan_would_write_them(quantity: Quantity, text: str) -> None:
    assert show_quantity(quantity) == text
