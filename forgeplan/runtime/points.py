"""Does a point in training that a plan names (`every = 500 steps`, `30min`, `10%`) lie in the step just made?

Pure arithmetic on counters that are equal on every rank, so that every rank answers the same.
"""

from __future__ import annotations

from fractions import Fraction
from math import floor

from attrs import frozen

from forgeplan.diagnostics.refusal import InternalError
from forgeplan.plan.execution_plan import ExecutionPlan
from forgeplan.runtime.state import TrainState
from forgeplan.spec.quantity import SECONDS, SHARE, STEPS, TOKENS, Quantity


@frozen
class Progress:
    """How far a run has come, at a step boundary."""

    steps: int
    tokens: int
    seconds: float

    @classmethod
    def of(cls, state: TrainState) -> Progress:
        return cls(state.step, state.tokens, state.wall_seconds)


@frozen
class Passage:
    """What passed between two neighbouring step boundaries. `total_steps` is None where only time bounds the run."""

    before: Progress
    now: Progress
    total_steps: int | None = None
    wall: Fraction | None = None
    """budget.wall in seconds."""

    def reaches(self, every: Quantity) -> bool:
        """Whether `now` is the first step boundary at or after a multiple of `every`."""
        distance = Fraction(every.amount)
        if every.dimension == SHARE:
            if self.total_steps is not None:
                return self._crosses(self.before.steps, self.now.steps, distance * self.total_steps)
            if self.wall is not None:
                return self._crosses(self.before.seconds, self.now.seconds, distance * self.wall)
            raise InternalError("a share of a budget that has neither steps nor time")
        counter = {STEPS: "steps", TOKENS: "tokens", SECONDS: "seconds"}[every.dimension]
        return self._crosses(getattr(self.before, counter), getattr(self.now, counter), distance)

    @staticmethod
    def _crosses(before: float, now: float, distance: Fraction) -> bool:
        return floor(Fraction(now) / distance) > floor(Fraction(before) / distance)


def passage(plan: ExecutionPlan, before: Progress, state: TrainState) -> Passage:
    return Passage(before, Progress.of(state), plan.steps, plan.job.budget.wall)
