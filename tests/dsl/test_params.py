"""Do params take what their type and range say?"""

from __future__ import annotations

from fractions import Fraction

import pytest

from tests.dsl.plans import at, codes, extended, job_of, labelled, only, values


@pytest.mark.parametrize(
    ("declared", "given", "use", "path", "value"),
    [
        ("n: Int = 1", "3", "seed = n", "seed", 3),
        ("n: Int(0 .. 9) = 1", "9", "seed = n", "seed", 9),
        ("n: Rate(1e-6 .. 1e-2) = 1e-3", "2e-3", "optimizer.lr = n", "optimizer.lr", Fraction(1, 500)),
        ("n: Tokens = 1Ki tokens", "2Ki tokens", "batch.length = n", "batch.length", 2048),
        ("n: Share = 1%", "5%", "schedule = cosine { floor = n }", "schedule.floor", Fraction(1, 20)),
        ("n: Duration = 1h", "90s", "budget.wall = n", "budget.wall", 90),
        ("n: Bytes = 1GiB", "2GB", "cluster.hbm = n", "cluster.hbm", 2 * 10**9),
        ("n: Bool = true", "false", "model.tie = n", "model.tie", False),
        ("n: OneOf(fp32, bf16) = bf16", "fp32", "precision.compute = n", "precision.compute", "fp32"),
        ('n: Path = "a"', "b c.txt", "sources.web.path = n", "sources.web.path", "b c.txt"),
        (
            "n: List[Number] = [0.9, 0.95]",
            "[0.8, 0.9]",
            "optimizer.betas = n",
            "optimizer.betas",
            (Fraction(4, 5), Fraction(9, 10)),
        ),
        ("n: Tokens? = none", "1Ki tokens", "model.window = n", "model.window", 1024),
    ],
)
def test_a_param_takes_values_of_its_type(declared: str, given: str, use: str, path: str, value: object) -> None:
    job = job_of(use, f"n={given}", top=f"param {declared}\n")
    assert values(job, path) == [value]


@pytest.mark.parametrize(
    ("declared", "given", "code"),
    [
        ("n: Int = 1", "1.5", "FP0307"),
        ("n: Int = 1", "1 step", "FP0308"),
        ("n: Tokens = 1 token", "5", "FP0309"),
        ("n: Int(0 .. 9) = 1", "10", "FP0315"),
        ("n: OneOf(fp32, bf16) = bf16", "fp64", "FP0311"),
        ("n: Bool = true", "1", "FP0307"),
    ],
)
def test_what_a_param_does_not_take_is_one_error_on_the_command_line(declared: str, given: str, code: str) -> None:
    loaded = extended("", f"n={given}", top=f"param {declared}\n")
    fault = only(loaded)
    assert (fault.code, at(loaded, fault)) == (code, given)


def test_a_range_is_shown_with_its_declaration() -> None:
    loaded = extended("", "peak_lr=1")
    fault = only(loaded)
    assert fault.code == "FP0315"
    assert labelled(loaded, fault) == ["1", "1e-6 .. 1e-2"]


def test_a_param_that_a_field_refuses_is_shown_with_both_ranges() -> None:
    loaded = extended("model.heads = k", top="param k: Int(0 .. 10) = 0\n")
    fault = only(loaded)
    assert fault.code == "FP0315"
    assert labelled(loaded, fault) == ["k", "Int(0 .. 10)"]
    assert "its range is at least 1" in fault.message


def test_a_param_has_a_value_and_its_type_exists() -> None:
    loaded = extended("seed = n", top="param n: Int\n")
    assert only(loaded).code == "FP0315"
    assert values(job_of("seed = n", "n=2", top="param n: Int\n"), "seed") == [2]
    loaded = extended("seed = n", top="param n: Itn = 3\n")
    assert (only(loaded).code, at(loaded, only(loaded))) == ("FP0201", "Itn")


def test_a_typed_let_is_held_to_its_type() -> None:
    assert codes(extended("seed = n", top="let n: Int = 3\n")) == []
    assert codes(extended("seed = n", top="let n: Int = 3.5\n")) == ["FP0307"]
