"""Does every plan that compiles run, save and go on? Every other one is refused with a code."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from math import isfinite
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings

from forgeplan.analysis import analyse
from forgeplan.compiler import emit
from forgeplan.diagnostics.codes import registered
from forgeplan.plan.codec import dumps
from forgeplan.runtime.selftest.pool import Pools
from tests.plans.drawn import AXES, RECOMPUTE, SCHEDULES, Drawn, plans
from tests.plans.on_ranks import run_and_resume

FEW, MANY = 300, 3_000
REACHED = (
    *AXES, "ep", "dense", "moe", "mtp", "fp8", "compile", "loss z", "loss plain",
    *(f"recompute {mode}" for mode in RECOMPUTE), *(f"schedule {text.split(' ')[0]}" for text in SCHEDULES),
)  # fmt: skip


class Reach:
    """What the drawn plans came to."""

    def __init__(self) -> None:
        self.refused: Counter[str] = Counter()
        self.accepted: Counter[str] = Counter()
        self.num_accepted = self.num_refused = 0

    def accept(self, drawn: Drawn) -> None:
        self.num_accepted += 1
        self.accepted.update(drawn.features)

    def report(self) -> str:
        total = self.num_accepted + self.num_refused
        lines = [f"accepted {self.num_accepted} of {total} drawn plans"]
        lines += [f"  {name}: {self.accepted[name] / max(self.num_accepted, 1):.0%}" for name in REACHED]
        lines += [f"refused by {code}: {number}" for code, number in self.refused.most_common()]
        return "\n".join(lines)

    def check(self) -> None:
        print(self.report())
        assert self.num_accepted >= 0.4 * (self.num_accepted + self.num_refused), self.report()
        for name in REACHED:
            assert self.accepted[name] >= 0.05 * self.num_accepted, f"{name}\n{self.report()}"


@pytest.fixture(scope="module")
def pools() -> Iterator[Pools]:
    made = Pools()
    yield made
    made.close()


@pytest.mark.timeout(6 * 3600)
@pytest.mark.parametrize("number", [FEW, pytest.param(MANY, marks=pytest.mark.slow)])
def test_a_plan_that_compiles_runs_and_resumes(number: int, pools: Pools, tmp_path: Path) -> None:
    reach = Reach()

    @settings(
        max_examples=number, deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck)
    )
    @given(plans())
    def check(drawn: Drawn) -> None:
        folder = tmp_path / str(reach.num_accepted)
        compiled = compiled_or_refused(drawn, folder, reach)
        if compiled is None:
            return
        reach.accept(drawn)
        if drawn.world == 1:
            answers = [run_and_resume(compiled, str(folder))]
        else:
            answers = pools[drawn.world].run("tests.plans.on_ranks:run_and_resume", compiled, str(folder))
        steps, resumed = answers[0]
        assert len(steps) == 3
        assert all(isfinite(value) for step in steps for value in step)
        assert resumed == steps[-1:], "a run that stopped and went on is another"
        assert all(answer == answers[0] for answer in answers), "ranks disagree"

    check()
    reach.check()


def compiled_or_refused(drawn: Drawn, folder: Path, reach: Reach) -> bytes | None:
    """The plan's bytes, or None where it is refused, which must be with codes that are known."""
    folder.mkdir(exist_ok=True)
    analysis = analyse(str(folder / "drawn.forge"), text=drawn.text)
    if analysis.errors:
        for error in analysis.errors:
            assert error.code in registered(), error
        reach.num_refused += 1
        reach.refused.update({error.code for error in analysis.errors})
        return None
    return dumps(emit(analysis.job("drawn"), sources=analysis.sources))
