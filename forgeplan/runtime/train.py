"""How does one step follow the other?"""

from __future__ import annotations

from enum import Enum
from typing import Protocol

from forgeplan.plan.execution_plan import ExecutionPlan
from forgeplan.runtime.data.microbatch import Microbatch
from forgeplan.runtime.points import Passage
from forgeplan.runtime.reports import StepReport
from forgeplan.runtime.state import TrainState


class TrainData(Protocol):
    def microbatches(self, first_sample: int) -> list[Microbatch]:
        """This rank's `batch.accumulation` microbatches of the step whose first sequence (over all ranks) is `first_sample`."""


class Services(Protocol):
    """What the loop asks of the world around it. Called on every rank; all but `stop_requested` at the same step on all."""

    def stop_requested(self) -> bool:
        """Whether a signal reached this rank. The answers of all ranks are combined: every rank stops after the same step."""

    def on_step(self, report: StepReport) -> None: ...

    def evaluate_if_due(self, passage: Passage, state: TrainState) -> None:
        """Evaluate where `passage.reaches(eval.every)`. The end of a run is not the loop's business."""

    def save_if_due(self, passage: Passage, state: TrainState) -> None:
        """Save where `passage.reaches(checkpoint.every)`. The end of a run is not the loop's business."""


class Outcome(Enum):
    FINISHED = "finished"
    """All steps of the budget are made."""
    OUT_OF_TIME = "out of time"
    """budget.wall is used up."""
    STOPPED = "stopped"
    """A signal asked for it; run again to go on."""
