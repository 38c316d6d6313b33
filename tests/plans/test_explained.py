"""Is the page of a large plan what was looked at, and are its numbers the plan's?"""

from __future__ import annotations

import re

import pytest
from syrupy.assertion import SnapshotAssertion

from forgeplan.compiler.explain import explain
from tests.plans.test_shipped import compiled


def test_the_page_of_dense_70b_is_the_one_that_was_looked_at(snapshot: SnapshotAssertion) -> None:
    page = explain(compiled("dense_70b"), width=80)
    assert max(map(len, page.splitlines())) <= 80
    assert re.sub(r"plan [0-9a-f]{12}", "plan ············", page) == snapshot


PIPED = ("mesh.pp=4", "mesh.dp_replicate=1", "mesh.dp_shard=2", "mesh.tp=8", "batch.accumulation=16")
CUT = ("mesh.dp_replicate=1", "mesh.dp_shard=4", "mesh.cp=2", "mesh.tp=8")


@pytest.mark.parametrize("overrides", [PIPED, CUT], ids=["pipeline", "context"])
def test_the_pages_of_other_layouts_are_those_that_were_looked_at(
    overrides: tuple[str, ...], snapshot: SnapshotAssertion
) -> None:
    page = explain(compiled("dense_70b", *overrides), width=80)
    assert max(map(len, page.splitlines())) <= 80
    assert page[page.index("── MESH") : page.index("── PROGRAM")] == snapshot


def test_the_numbers_of_the_page_are_the_plans() -> None:
    plan = compiled("dense_70b")
    page = explain(plan, width=80)
    (ranks,) = plan.rank_classes
    numbers = (
        plan.estimates.num_parameters,
        plan.estimates.tokens_per_step,
        plan.steps,
        ranks.parameter_bytes,
        ranks.gradient_bytes,
        ranks.optimizer_bytes,
        ranks.state_bytes,
    )
    assert [number for number in numbers if f"{number:,}" not in page] == []
    assert plan.meaning[:12] in page
    assert all(f"{place}  {operation.name}" in page for place, operation in enumerate(plan.program, start=1))
