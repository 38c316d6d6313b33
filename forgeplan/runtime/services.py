"""What happens between two steps of training: reports, evaluations, checkpoints, signals."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Protocol

from attrs import define, field

from forgeplan.plan.execution_plan import ExecutionPlan
from forgeplan.runtime.checkpoint.save import SaveFailed, Saver
from forgeplan.runtime.data.microbatch import Microbatch
from forgeplan.runtime.evaluate import evaluate
from forgeplan.runtime.executor import Bundle, named_tensors
from forgeplan.runtime.metrics.reporter import Reporter, against_entropy
from forgeplan.runtime.optim.optimizer import Optimizer
from forgeplan.runtime.points import Passage, Progress, passage
from forgeplan.runtime.ranks import Ranks
from forgeplan.runtime.reports import EvalReport, StepReport
from forgeplan.runtime.signals import Signals
from forgeplan.runtime.state import TrainState

_BATCHES_BETWEEN_LOOKS = 8


class HeldOut(Protocol):
    def microbatches(self) -> Iterator[Microbatch]: ...

    def unigram_entropy(self) -> float: ...


class Interrupted(Exception):
    """A signal came during an evaluation; raised on every rank before the same microbatch."""


@define
class RunServices:
    """The world around the loop. `reporter` is None on all ranks but the first."""

    plan: ExecutionPlan
    bundle: Bundle
    optimizer: Optimizer
    ranks: Ranks
    signals: Signals
    evals: Mapping[str, HeldOut]
    saver: Saver
    reporter: Reporter | None
    saved: Path | None = None
    """The newest checkpoint of this run."""
    saved_step: int | None = None
    last_losses: dict[str, EvalReport] = field(factory=dict)
    _failed_saves: int = 0

    def stop_requested(self) -> bool:
        return self.signals.stop_requested

    def on_step(self, report: StepReport) -> None:
        if self.reporter is not None:
            self.reporter.step(report)

    def evaluate_if_due(self, passage: Passage, state: TrainState) -> None:
        for name, block in self.plan.job.eval.items():
            if passage.reaches(block.every) and not self.evaluate(name, state.step):
                return

    def evaluate_missed(self, state: TrainState) -> None:
        """The evaluations that were due after the step a run goes on from, if it ended between that save and them."""
        if state.step == 0:
            return
        reporter = self.reporter
        made: list[str] = self.ranks.from_first(lambda: sorted(reporter.evaluated) if reporter is not None else [])
        # When that step began is not known: what is due by the clock waits for its next time.
        before = Progress(state.step - 1, state.tokens - self.plan.tokens_per_step, state.wall_seconds)
        passed = passage(self.plan, before, state)
        for name, block in self.plan.job.eval.items():
            if name not in made and passed.reaches(block.every) and not self.evaluate(name, state.step):
                return

    def evaluate_all(self, step: int) -> bool:
        """Every evaluation that was not made after this step yet; False if a signal interrupted one."""
        return all(self.evaluate(name, step) for name in self.evals if not self._is_evaluated(name, step))

    def evaluate(self, name: str, step: int) -> bool:
        """Make one evaluation and report it; False if a signal interrupted it, then nothing is reported."""
        if self.reporter is not None:
            self.reporter.evaluating(name, step)
        try:
            report = evaluate(name, self.bundle, self._until_stopped(self.evals[name].microbatches()), step)
        except Interrupted:
            return False
        self.last_losses[name] = report
        if self.reporter is not None:
            self.reporter.evaluation(report)
        return True

    def save_if_due(self, passage: Passage, state: TrainState) -> None:
        """Save at the plan's distance. One failure is told and outlived; a second in a row raises SaveFailed."""
        every = self.plan.job.checkpoint.every
        if every is None or not passage.reaches(every):
            return
        try:
            self.save(state)
        except SaveFailed as failure:
            self._failed_saves += 1
            if self._failed_saves > 1:
                raise
            if self.reporter is not None:
                self.reporter.display.say(f"warning: {failure}; training goes on, the next save is the last try")

    def save(self, state: TrainState) -> None:
        """Save this step, unless it is saved. Raises SaveFailed on every rank."""
        if self.saved_step == state.step:
            return
        self.saved = self.saver.save(named_tensors(self.bundle, self.optimizer), state)
        self.saved_step, self._failed_saves = state.step, 0

    def results(self) -> list[str]:
        """The last loss of every evaluation, beside the entropy of the same labels; on rank 0."""
        if self.reporter is None:
            return []
        reports, entropy_of = self.last_losses.values(), self.reporter.entropy_of
        return [f"{r.name}: {against_entropy(r, entropy_of(r.name))}" for r in reports]

    def _is_evaluated(self, name: str, step: int) -> bool:
        return name in self.last_losses and self.last_losses[name].step == step

    def _until_stopped(self, microbatches: Iterable[Microbatch]) -> Iterator[Microbatch]:
        """An evaluation may be longer than the time a stop signal leaves: look at every few microbatches, together."""
        for number, microbatch in enumerate(microbatches):
            if number % _BATCHES_BETWEEN_LOOKS == 0 and self.ranks.any(self.signals.stop_requested):
                raise Interrupted
            yield microbatch


def entropies(evals: Mapping[str, HeldOut]) -> Callable[[str], float]:
    """Unigram entropy of each evaluation by its name; computed once, when it is first asked for."""
    return cache(lambda name: evals[name].unigram_entropy())
