"""Which cells does a sweep have?"""

from __future__ import annotations

from fractions import Fraction

import pytest

from tests.dsl.plans import CONTEXT, at, codes, described, only, read, values

PLAN = CONTEXT + "plan a extends context {}\n"


def test_cells_are_the_product_of_the_axes_without_the_excluded() -> None:
    loaded = read(
        PLAN + "sweep s over a {\n  axis peak_lr in [1e-4, 2e-4]\n  axis seed in 0 .. 2\n"
        "  exclude peak_lr > 1e-4 and seed > 0\n  limit = 12 runs\n}\n"
    )
    assert codes(loaded) == []
    jobs = loaded.jobs
    assert [job.name for job in jobs] == ["a", "a/s-0", "a/s-1", "a/s-2", "a/s-3"]
    assert [values(job, "optimizer.lr", "seed") for job in jobs[1:]] == [
        [Fraction(1, 10_000), 0],
        [Fraction(1, 10_000), 1],
        [Fraction(1, 10_000), 2],
        [Fraction(1, 5_000), 0],
    ]
    assert jobs[2].leaves["seed"].origins[0].layer == "cell s-1"
    assert jobs[1].derived["run.dir"] == "runs/a/s-0"


def test_zipped_axes_go_together_and_fixed_overrides_hold_in_every_cell() -> None:
    loaded = read(
        PLAN + "sweep s over a {\n  zip {\n    axis model.layers in [2, 4]\n    axis model.dim in [512, 1_024]\n  }\n"
        "  batch.micro = 2 sequences\n}\n"
    )
    assert codes(loaded) == []
    assert [values(j, "model.layers", "model.dim", "batch.micro") for j in loaded.jobs[1:]] == [
        [2, 512, 2],
        [4, 1024, 2],
    ]


def test_a_fault_in_a_cell_names_the_cell() -> None:
    loaded = read(PLAN + "sweep s over a { axis model.layers in [1, 0] }\n")
    fault = only(loaded)
    assert (fault.code, fault.view, at(loaded, fault)) == ("FP0310", "a/s-1", "0")


def test_a_cell_is_stronger_than_a_profile_and_weaker_than_the_command_line() -> None:
    loaded = read(PLAN + "sweep s over a { axis seed in [7] }\n", "seed=8")
    job = loaded.job("a", None, "s-0")
    assert [(o.layer, o.text) for o in job.leaves["seed"].origins][:2] == [("command line", "8"), ("cell s-0", "7")]


@pytest.mark.parametrize(
    ("sweep", "code", "place"),
    [
        ("axis model.params in [1, 2]", "FP0319", "model.params"),
        ("axis sed in [1]", "FP0319", "sed"),
        ("axis seed in [1], axis seed in [2]", "FP0319", "seed"),
        ("axis seed in 0 .. 99, limit = 12 runs", "FP0320", "s"),
        ("axis seed in [1], exclude seed == 1", "FP0320", "s"),
        ("axis seed in [1], limit = 12", "FP0320", "12"),
        ("zip { axis seed in [1, 2], axis model.layers in [1, 2, 3] }", "FP0320", "seed"),
        ("axis seed in 0 .. 10 ** 9", "FP0314", "0 .. 10 ** 9"),
        ("limit = 3 runs", "FP0320", "s"),
    ],
)
def test_a_faulty_sweep_is_one_error(sweep: str, code: str, place: str) -> None:
    loaded = read(PLAN + f"sweep s over a {{ {sweep} }}\n")
    fault = only(loaded)
    assert (fault.code, at(loaded, fault)) == (code, place), described(loaded.diagnostics)


def test_a_sweep_over_an_unknown_plan_is_an_error() -> None:
    assert codes(read(PLAN + "sweep s over b { axis seed in [1] }\n")) == ["FP0209"]
