"""Is the page of a large plan what was looked at, and are its numbers the plan's?"""

from __future__ import annotations

import re

from syrupy.assertion import SnapshotAssertion

from forgeplan.compiler.explain import explain
from tests.plans.test_shipped import compiled


def test_the_page_of_dense_70b_is_the_one_that_was_looked_at(snapshot: SnapshotAssertion) -> None:
    page = explain(compiled("dense_70b"), width=80)
    assert max(map(len, page.splitlines())) <= 80
    assert re.sub(r"plan [0-9a-f]{12}", "plan ············", page) == snapshot


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
