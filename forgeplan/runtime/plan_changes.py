"""May a run go on from a checkpoint with the plan that it has now, and what is different?"""

from __future__ import annotations

from pathlib import Path

from forgeplan.diagnostics.codes import code
from forgeplan.diagnostics.refusal import Refusal
from forgeplan.plan.changes import Difference, differences
from forgeplan.plan.execution_plan import ExecutionPlan
from forgeplan.plan.verify import read
from forgeplan.runtime.checkpoint.load import load_plan
from forgeplan.spec.setting import Change

OTHER_PLAN = code("FP1016", "a run goes on with the plan that it was started with, but for changes that it can take")

_NAMED = 12


def changes_since(checkpoint: Path, plan: ExecutionPlan) -> list[str]:
    """What has changed since the checkpoint, for a person; an empty list for the same plan.

    Raises Refusal FP1016 where a change makes a new run.
    """
    found = differences(read(load_plan(checkpoint)), plan)
    other_run = [d for d in found if d.change is Change.NEW_RUN]
    if other_run:
        raise Refusal(
            OTHER_PLAN,
            f"{checkpoint} was trained by a plan with other values; going on would train neither of the two:\n  "
            + "\n  ".join(_lines(other_run)),
            (
                f"to go on with this run, change them back; the plan it was trained with is {checkpoint / 'plan.json'}",
                "to train the changed plan, start a new run: give it another name or another `checkpoint.path`",
            ),
        )
    return ["the plan has changed since this checkpoint:", *(f"  {line}" for line in _lines(found))] if found else []


def _lines(found: list[Difference]) -> list[str]:
    more = len(found) - _NAMED
    return [d.text for d in found[:_NAMED]] + ([f"and {more} more"] if more > 0 else [])
