"""What happens between the start of a run and its end, once all ranks are together and its directory is held?"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import torch
from attrs import define, field

from forgeplan.diagnostics.refusal import Refusal
from forgeplan.plan.execution_plan import ExecutionPlan
from forgeplan.runtime import certificate, manifest
from forgeplan.runtime.checkpoint.choose import Decision, choose
from forgeplan.runtime.checkpoint.load import load_data_record, load_state, load_tensors
from forgeplan.runtime.checkpoint.save import Saver
from forgeplan.runtime.data.eval_data import EvalData
from forgeplan.runtime.data.train_data import TrainData
from forgeplan.runtime.dry_run import resume_of
from forgeplan.runtime.executor import Bundle, build, named_tensors, real_rows
from forgeplan.runtime.files import json_bytes, replace
from forgeplan.runtime.metrics.display import duration
from forgeplan.runtime.metrics.reporter import Reporter
from forgeplan.runtime.optim.optimizer import Optimizer, build_optimizer
from forgeplan.runtime.options import ExitCode, RunOptions
from forgeplan.runtime.plan_changes import changes_since
from forgeplan.runtime.ranks import Ranks
from forgeplan.runtime.run_directory import RunDirectory
from forgeplan.runtime.services import RunServices, entropies
from forgeplan.runtime.signals import Signals
from forgeplan.runtime.state import TrainState
from forgeplan.runtime.train import Outcome, train


@define
class Session:
    """One stretch of a run, on one rank. What is printed is printed by rank 0."""

    plan: ExecutionPlan
    plan_bytes: bytes
    options: RunOptions
    directory: RunDirectory
    ranks: Ranks
    device: torch.device
    signals: Signals
    state: TrainState = field(factory=TrainState, init=False)
    _checkpoint: Path | None = field(default=None, init=False)

    def run(self) -> int:
        """Train to the end of the budget or to a signal, and return the exit code. Collective."""
        decision = choose(self.directory.checkpoints, resume_of(self.plan, self.options), self.ranks)
        self._say(*self._header(), *self._proof(), *decision.notes, decision.reason)
        self._say(*self._changes(decision))
        if self._is_complete(decision):
            self._checkpoint = decision.path
            self._say(f"nothing to do: all {self.plan.steps:,} steps are made", *self._paths())
            return ExitCode.FINE
        self._announce_signals(self._say)
        self.ranks.together(lambda: self._prepare(decision))
        bundle = build(self.plan, self.device)
        optimizer = build_optimizer(bundle)
        data = self._open_data(bundle)
        try:
            self._resume(decision, bundle, optimizer, data)
            return self._train(bundle, optimizer, data)
        finally:
            data.close()

    def show_sample(self, exit_code: int) -> None:
        """At the end of a text plan: what the saved model writes. On rank 0, from the checkpoint, after the run."""
        from forgeplan.runtime.sample import sample_of

        if exit_code != ExitCode.FINE or not self.ranks.is_first or self._checkpoint is None:
            return
        try:
            sample = sample_of(self._checkpoint, Path(self.options.project))
        except (Refusal, OSError, MemoryError) as error:
            # The run is over and saved: that its model cannot write is news, and no failure of the run.
            reason = error.message if isinstance(error, Refusal) else str(error) or type(error).__name__
            self._say("", f"no sample: {reason}")
            return
        if sample is not None:
            self._say("", *sample.lines())

    def _train(self, bundle: Bundle, optimizer: Optimizer, data: TrainData) -> int:
        evals = self._open_evals(bundle)
        saver = self._saver(data)
        reporter = self.ranks.together(lambda: self._open_reporter(evals))
        services = RunServices(
            self.plan, bundle, optimizer, self.ranks, self.signals, evals, saver, reporter, self._checkpoint
        )
        services.saved_step = self.state.step if self._checkpoint is not None else None
        outcome = Outcome.STOPPED
        try:
            if not self.ranks.any(self.signals.stop_requested):
                services.evaluate_missed(self.state)
                outcome = train(self.plan, bundle, optimizer, data, self.state, services)
            # Before the last evaluations: they may take long, and a failure there must not cost what was trained.
            if self.state.step > 0:
                services.save(self.state)
            if outcome is not Outcome.STOPPED and not services.evaluate_all(self.state.step):
                outcome = Outcome.STOPPED
        finally:
            self._checkpoint = services.saved
            if reporter is not None:
                reporter.close()
        return self._conclude(outcome, services)

    def _conclude(self, outcome: Outcome, services: RunServices) -> int:
        exit_code = ExitCode.STOPPED if outcome is Outcome.STOPPED else ExitCode.FINE
        self.ranks.together(lambda: self._record_end(outcome, exit_code))
        total = f" of {self.plan.steps:,}" if self.plan.steps is not None else ""
        self._say(
            f"{outcome.value} after step {self.state.step:,}{total}, {duration(self.state.wall_seconds)} of training",
            *services.results(),
            *self._paths(),
        )
        if exit_code == ExitCode.STOPPED:
            self._say("run the same command again to go on")
        return exit_code

    def _record_end(self, outcome: Outcome, exit_code: int) -> None:
        if not self.ranks.is_first:
            return
        manifest.end(self.directory, outcome.value, self.state.step, exit_code)
        if outcome is Outcome.STOPPED:
            content = {
                "reason": "signal",
                "signal": self.signals.first or None,
                "step": self.state.step,
                "checkpoint": str(self._checkpoint) if self._checkpoint is not None else None,
                "requeue": True,
                "exit_code": exit_code,
                "time": datetime.now(UTC).isoformat(timespec="seconds"),
            }
            replace(self.directory.stopped, json_bytes(content))

    def _changes(self, decision: Decision) -> list[str]:
        """What the plan has changed since the checkpoint; refused on every rank if that makes another run."""
        path = decision.path
        if path is None:
            return []
        found: list[str] = self.ranks.from_first(lambda: changes_since(path, self.plan))
        return found

    def _is_complete(self, decision: Decision) -> bool:
        """Whether the last step is saved, and the run came to its end: the last evaluations are made."""
        if decision.step is None or self.plan.steps is None or decision.step < self.plan.steps:
            return False
        outcome = self.ranks.from_first(lambda: manifest.last_outcome(self.directory))
        return bool(outcome == Outcome.FINISHED.value)

    def _prepare(self, decision: Decision) -> None:
        """What rank 0 writes before training."""
        if not self.ranks.is_first:
            return
        replace(self.directory.plan, self.plan_bytes)
        self.directory.stopped.unlink(missing_ok=True)
        proof = certificate.of_plan(self.directory.certificate, self.plan)
        manifest.begin(self.directory, self.plan, decision.reason, self.ranks.world, proof)

    def _open_data(self, bundle: Bundle) -> TrainData:
        data_rank, project = bundle.meshes.data_rank, Path(self.options.project)
        data = self.ranks.together(
            lambda: TrainData(self.plan, data_rank=data_rank, project=project, barrier=self.ranks.wait)
        )
        self._say(data.describe())
        return data

    def _open_evals(self, bundle: Bundle) -> Mapping[str, EvalData]:
        data_rank, project = bundle.meshes.data_rank, Path(self.options.project)

        def opened(name: str) -> EvalData:
            return EvalData(self.plan, name, data_rank=data_rank, project=project, barrier=self.ranks.wait)

        return {name: self.ranks.together(partial(opened, name)) for name in self.plan.job.eval}

    def _resume(self, decision: Decision, bundle: Bundle, optimizer: Optimizer, data: TrainData) -> None:
        if decision.path is None:
            return
        path = decision.path
        record = self.ranks.together(lambda: load_data_record(path))
        self.ranks.together(lambda: data.check_unchanged(record))
        self.state = self.ranks.together(lambda: load_state(path))
        tensors = named_tensors(bundle, optimizer)
        load_tensors(path, tensors, self.ranks, real_rows=real_rows(self.plan, tensors))
        self._checkpoint = path

    def _open_reporter(self, evals: Mapping[str, EvalData]) -> Reporter | None:
        if not self.ranks.is_first:
            return None
        reporter = Reporter.open(self.plan, self.directory, self.state, self.device, entropies(evals))
        self._announce_signals(reporter.display.say)
        return reporter

    def _saver(self, data: TrainData) -> Saver:
        written = self.plan.job.checkpoint.keep
        keep = None if isinstance(written, str) else written
        return Saver(self.directory.checkpoints, self.plan_bytes, data.record(), keep, self.ranks)

    def _announce_signals(self, say: Callable[[str], None]) -> None:
        if self.ranks.is_first:
            self.signals.announce_with(
                lambda name: say(f"{name}: saving and stopping after this step; once more ends at once")
            )

    def _header(self) -> list[str]:
        estimates, mesh = self.plan.estimates, self.plan.mesh
        where = f"{mesh.world} × {self.device.type}" + (f" ({mesh.describe()})" if mesh.world > 1 else "")
        return [f"{self.plan.name}: {estimates.num_parameters:,} parameters on {where}, plan {self.plan.meaning[:12]}"]

    def _proof(self) -> list[str]:
        """Whether this very plan was proven to train what one process trains."""
        if not self.ranks.is_first:
            return []
        return [certificate.sentence(self.directory.certificate, self.plan, self.options.prove)]

    def _paths(self) -> list[str]:
        checkpoint = str(self._checkpoint) if self._checkpoint is not None else "none: nothing was saved"
        return [
            f"plan        {self.directory.plan}",
            f"metrics     {self.directory.metrics}",
            f"checkpoint  {checkpoint}",
        ]

    def _say(self, *lines: str) -> None:
        if self.ranks.is_first and lines:
            print("\n".join(lines), flush=True)
