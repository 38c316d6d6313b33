"""Is this step's update made?"""

from __future__ import annotations

from math import isfinite
from typing import Any

from forgeplan.diagnostics.counted import plural
from forgeplan.diagnostics.refusal import Refusal
from forgeplan.diagnostics.refusals import TROUBLE
from forgeplan.runtime.state import TrainState
from forgeplan.spec.nonfinite.policies import Skip


def accepts(loss: float, norm: float) -> bool:
    """Whether loss and gradient norm are finite. Both are of the whole job, so the answer is the same on every rank."""
    return isfinite(loss) and isfinite(norm)


def check_budget(policy: Any, state: TrainState, loss: float, norm: float) -> None:
    """After a step that was not accepted. Raises Refusal FP1019 where the policy has no patience (left)."""
    what = f"step {state.step}: loss {loss:g}, gradient norm {norm:g}"
    if not isinstance(policy, Skip):
        raise Refusal(TROUBLE, f"{what}; guard.nonfinite = stop", "lower the rate, or write guard.nonfinite = skip")
    if state.skipped > policy.budget:
        were = "was" if state.skipped == 1 else "were"
        raise Refusal(
            TROUBLE,
            f"{what}; {plural(state.skipped, 'step')} {were} skipped, and guard.nonfinite allows {policy.budget}",
            ("lower optimizer.lr or guard.clip", "raise guard.nonfinite.budget if the data is known to be that bad"),
        )
