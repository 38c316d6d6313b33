"""Do the rows that are run by default have every axis and every pair, and are rows found by name?"""

from __future__ import annotations

from itertools import combinations

import pytest

from forgeplan.diagnostics.refusal import UsageError
from forgeplan.plan.mesh import AXES, Mesh
from forgeplan.runtime.selftest.table import TABLE, chosen

ALL_AXES = (*AXES, "ep")
REFUSED = {("pp", "ep")}
"""Experts and a pipeline in one plan do not compile."""


def axes_of(mesh: Mesh) -> set[str]:
    return {axis for axis in ALL_AXES if getattr(mesh, axis) > 1}


@pytest.mark.parametrize("axis", ALL_AXES)
def test_every_axis_is_in_the_quick_table(axis: str) -> None:
    assert any(axis in axes_of(row.mesh) for row in chosen([], every=False))


@pytest.mark.parametrize("pair", [pair for pair in combinations(ALL_AXES, 2) if pair not in REFUSED], ids="-".join)
def test_every_pair_of_axes_is_in_the_quick_table(pair: tuple[str, str]) -> None:
    assert any(set(pair) <= axes_of(row.mesh) for row in chosen([], every=False))


def test_quick_rows_need_four_ranks_at_most_and_all_rows_eight() -> None:
    assert max(row.num_ranks for row in chosen([], every=False)) == 4
    assert max(row.num_ranks for row in TABLE) == 8


def test_names_of_rows_are_unique() -> None:
    assert len({row.name for row in TABLE}) == len(TABLE)


def test_rows_are_chosen_by_what_is_in_their_names_from_the_whole_table() -> None:
    assert chosen([], every=True) == list(TABLE)
    assert [row.name for row in chosen(["FSDP 2, TP 2, CP 2"], every=False)] == ["fsdp 2, tp 2, cp 2"]
    assert {row.name for row in chosen(["ring*norm", "hsdp 2x2, tp"], every=False)} == {
        "cp 4, ring, q/k norm",
        "hsdp 2x2, tp 2",
    }


def test_a_name_that_no_row_has_is_refused_with_the_nearest() -> None:
    with pytest.raises(
        UsageError, match=r"no row of the table has 'fsd 2' in its name\n  help: did you mean `fsdp 2`?"
    ):
        chosen(["tp 2", "fsd 2"], every=False)
    with pytest.raises(UsageError, match="--list --all"):
        chosen(["nothing like it"], every=False)


def test_on_accelerators_a_row_keeps_its_layout_and_leaves_fp64() -> None:
    for row in TABLE:
        plan, moved = row.plan(), row.on_accelerators().plan()
        assert (moved.mesh, moved.job.batch) == (plan.mesh, plan.job.batch)
        assert (moved.job.precision.compute, moved.job.model.attention) == ("fp32", "math")
