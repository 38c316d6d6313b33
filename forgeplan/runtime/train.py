"""How does one step follow the other?"""

from __future__ import annotations

from enum import Enum
from typing import Protocol

from forgeplan.plan.execution_plan import ExecutionPlan
from forgeplan.runtime.clip import clip_
from forgeplan.runtime.data.microbatch import Microbatch
from forgeplan.runtime.executor import Bundle
from forgeplan.runtime.guard import accepts, check_budget
from forgeplan.runtime.model.moe.bias import balance, rate_of
from forgeplan.runtime.optim.optimizer import Optimizer, clear_gradients
from forgeplan.runtime.points import Passage, Progress, passage
from forgeplan.runtime.reports import StepReport
from forgeplan.runtime.state import TrainState
from forgeplan.runtime.step import Stopwatch, backward, count_labels, reduce_totals
from forgeplan.spec.schedule.shapes import rate_factor


class TrainData(Protocol):
    def microbatches(self, first_sample: int) -> list[Microbatch]:
        """This rank's `batch.accumulation` microbatches of the step that starts at sequence `first_sample`."""


class Services(Protocol):
    """What the loop asks of the world around it. Called on every rank, after the same steps."""

    def stop_requested(self) -> bool:
        """Whether a signal reached this rank. Answers are combined: every rank stops after the same step."""

    def on_step(self, report: StepReport) -> None: ...

    def save_if_due(self, passage: Passage, state: TrainState) -> None:
        """Save where `passage.reaches(checkpoint.every)`. The end of a run is not the loop's business."""

    def evaluate_if_due(self, passage: Passage, state: TrainState) -> None:
        """Evaluate where `passage.reaches(eval.every)`. The end of a run is not the loop's business."""


class Outcome(Enum):
    FINISHED = "finished"
    """All steps of the budget are made."""
    OUT_OF_TIME = "out of time"
    """budget.wall is used up."""
    STOPPED = "stopped"
    """A signal asked for it; run again to go on."""


def train(
    plan: ExecutionPlan,
    bundle: Bundle,
    optimizer: Optimizer,
    data: TrainData,
    state: TrainState,
    services: Services,
) -> Outcome:
    """Train from `state`, kept up to date, to the end of the budget or until a signal. Collective over all ranks.

    Raises Refusal FP1019 when non-finite steps exceed the guard's budget.
    """
    watch = Stopwatch(state.wall_seconds)
    stopping = False
    while (outcome := end_of_run(plan, state, stopping)) is None:
        watch.start_step()
        microbatches = data.microbatches(state.samples)
        watch.data_arrived()
        counted = count_labels(microbatches, bundle)
        sums = backward(bundle, microbatches, counted)
        totals = reduce_totals(bundle, sums, counted, watch, services.stop_requested())
        before, update = Progress.of(state), state.step + 1
        rate = optimizer.peak_rate * rate_factor(plan.job.schedule, update, plan.steps, plan.tokens_per_step)
        accepted = accepts(totals.loss, totals.grad_norm)
        if accepted:
            if plan.job.guard.clip is not None:
                clip_((g for _, g in bundle.gradients()), totals.grad_norm, float(plan.job.guard.clip))
            optimizer.update(rate)
            balance(bundle.model, totals.counts(bundle.device), rate_of(plan, update))
            for after in bundle.after_update:
                after()
        clear_gradients(bundle.model)
        advance(plan, state, totals.counted, accepted, totals.wall_seconds)
        services.on_step(totals.report(state, rate, accepted, watch))
        if not accepted:
            check_budget(plan.job.guard.nonfinite, state, totals.loss, totals.grad_norm)
        stopping = totals.stop
        passed = passage(plan, before, state)
        services.save_if_due(passed, state)
        services.evaluate_if_due(passed, state)
    return outcome


def advance(plan: ExecutionPlan, state: TrainState, counted: int, accepted: bool, wall_seconds: float) -> None:
    """Count a completed step. A skipped one advances everything but the weights and their moments."""
    state.step += 1
    state.samples += plan.sequences_per_step
    state.tokens += plan.tokens_per_step
    state.counted += counted
    state.skipped += not accepted
    state.wall_seconds = wall_seconds


def end_of_run(plan: ExecutionPlan, state: TrainState, stopping: bool) -> Outcome | None:
    """Why the run ends at this step boundary, or None if it goes on. The same answer on every rank."""
    wall = plan.job.budget.wall
    if plan.steps is not None and state.step >= plan.steps:
        return Outcome.FINISHED
    if wall is not None and state.wall_seconds >= wall:
        return Outcome.OUT_OF_TIME
    return Outcome.STOPPED if stopping else None
