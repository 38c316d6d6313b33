"""Do `assert`, `warn` and `test` blocks say what decided them?"""

from __future__ import annotations

from pathlib import Path

from forgeplan.analysis import run_tests
from forgeplan.diagnostics.diagnostic import Severity
from tests.dsl.plans import CONTEXT, at, codes, described, extended, job_of, labelled, only, read


def test_an_assertion_that_fails_prints_every_operand_and_its_place() -> None:
    loaded = extended('mesh.dp_shard = 2\nassert mesh.dp_shard * batch.micro / 1 sequence == 6 else "six, please"')
    fault = only(loaded)
    assert fault.code == "FP0317"
    assert "does not hold: six, please" in fault.message
    assert fault.labels[0].text == "mesh.dp_shard = 2, batch.micro = 4 sequences"
    assert labelled(loaded, fault)[1:] == ["2", "4 sequences"]


def test_a_lone_operand_is_told_what_it_would_have_to_be() -> None:
    fault = only(extended("assert mesh.dp_shard == 2"))
    assert fault.help == ("`mesh.dp_shard` must be 2",)
    assert fault.notes == ("here mesh.dp_shard = 4",)


def test_a_warning_warns() -> None:
    loaded = extended('warn budget.tokens >= 100 * model.params else "undertrained"')
    fault = only(loaded)
    assert (fault.code, fault.severity) == ("plan-warning", Severity.WARNING)
    job = loaded.job("example")
    assert [(c.holds, c.is_warning, c.otherwise) for c in job.checks] == [(False, True, "undertrained")]
    assert job.checks[0].operands == (("budget.tokens", "160B tokens"), ("model.params", "8_030_261_248"))


def test_checks_hold_in_every_profile_and_in_plans_that_extend() -> None:
    loaded = extended("assert batch.micro <= 4 sequences\nprofile p { batch.micro = 8 sequences }")
    fault = only(loaded)
    assert fault.view == "example@p"
    text = CONTEXT + "plan a extends context { assert seed < 3 }\nplan b extends a { seed = 4 }\n"
    assert codes(read(text)) == ["FP0317"]
    assert codes(extended("profile p { assert seed == 1 }")) == ["FP0317"]


def test_a_check_on_a_rejected_value_is_silent() -> None:
    assert codes(extended("batch.micro = 4\nassert batch.micro == 3 sequences")) == ["FP0309"]


def test_a_fact_that_is_not_stated_is_no_success() -> None:
    loaded = extended("cluster.hbm = none\nassert memory.states < cluster.hbm")
    fault = only(loaded)
    assert fault.code == "FP0903"
    assert labelled(loaded, fault)[1] == "none"
    assert codes(extended("cluster.hbm = none\nassert cluster.hbm == none")) == []


def test_members_are_compared_bare() -> None:
    job = job_of("assert cluster.arch in [sm90, sm100] and optimizer == adamw and not (precision.params == bf16)")
    assert job.checks[0].holds
    assert job.checks[0].operands[0] == ("cluster.arch", "sm90")


def outcomes(tmp_path: Path, text: str) -> list[tuple[bool, list[str]]]:
    path = tmp_path / "plan.forge"
    path.write_text(CONTEXT + text, encoding="utf-8")
    return [(result.passed, described(result.diagnostics)) for result in run_tests(str(path))]


def test_test_blocks_expect_values_and_errors(tmp_path: Path) -> None:
    text = """
plan a extends context {}
test "counts" for a {
  expect model.params == 8_030_261_248
  expect batch.accumulation == 32
}
test "bad values are caught" for a {
  expect error FP0310 with { model.layers = 0 }
  expect error FP0301 with { mesh.tpp = 2 }
  expect error FP0402 with { mesh = { dp_replicate = 3 } }
}
"""
    assert outcomes(tmp_path, text) == [(True, []), (True, [])]


def test_a_test_that_fails_says_what_was_found(tmp_path: Path) -> None:
    text = """
plan a extends context {}
test "counts" for a {
  expect batch.accumulation == 33
  expect error FP0310 with { seed = "1" }
  expect error FP0310 with { seed = 1 }
  expect error FP9999
}
test "nobody" for b { expect true }
"""
    first, second = outcomes(tmp_path, text)
    assert first == (
        False,
        [
            "FP0318: `expect batch.accumulation == 33` does not hold",
            "FP0318: `FP0310` is expected, and FP0307 is reported",
            "FP0318: `FP0310` is expected, and nothing is reported",
            "FP0318: there is no code `FP9999`",
        ],
    )
    assert second == (False, ["FP0209: there is no plan `b`"])


def test_two_tests_of_one_title_are_a_repetition() -> None:
    loaded = read(
        CONTEXT + 'plan a extends context {}\ntest "t" for a { expect true }\ntest "t" for a { expect true }\n'
    )
    assert only(loaded).code == "FP0202"
    assert at(loaded, only(loaded)) == '"t"'
