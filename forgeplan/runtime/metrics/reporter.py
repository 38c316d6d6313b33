"""How does what the loop reports become lines, files and events? On rank 0 only; the other ranks report nothing."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

import torch
from attrs import define, evolve, field

from forgeplan.plan.execution_plan import ExecutionPlan
from forgeplan.runtime.metrics.display import Display, count, duration, open_display
from forgeplan.runtime.metrics.jsonl import MetricsFile, evaluations_after
from forgeplan.runtime.metrics.memory import peak_bytes_since_last
from forgeplan.runtime.metrics.rates import Clock, Peak, Rates
from forgeplan.runtime.metrics.records import Record, Sink
from forgeplan.runtime.metrics.routing import routing_columns
from forgeplan.runtime.registry import implementation
from forgeplan.runtime.reports import EvalReport, StepReport
from forgeplan.runtime.run_directory import RunDirectory
from forgeplan.runtime.state import TrainState


@define
class Reporter:
    """Writes a record every `metrics.every` steps and at the last one, and shows progress at every step."""

    plan: ExecutionPlan
    device: torch.device
    clock: Clock
    sinks: list[Sink]
    display: Display
    entropy_of: Callable[[str], float]
    """Unigram entropy of an evaluation's labels, in nats: what knowing only token frequencies achieves."""
    first_step: int = 0
    """The completed steps that the run goes on from."""
    evaluated: frozenset[str] = frozenset()
    """The evaluations after `first_step` whose records are there."""
    _clipped: int = field(default=0, init=False)
    _skipped: int = field(default=0, init=False)
    _interval_steps: int = field(default=0, init=False)
    _last: StepReport | None = field(default=None, init=False)
    _rates: Rates | None = field(default=None, init=False)

    @classmethod
    def open(
        cls,
        plan: ExecutionPlan,
        directory: RunDirectory,
        state: TrainState,
        device: torch.device,
        entropy_of: Callable[[str], float],
    ) -> Reporter:
        """For the steps after `state.step`; what files say about later steps is dropped, as they are trained again."""
        sinks: list[Sink] = [MetricsFile.open_after(directory.metrics, state.step)]
        sinks += [
            implementation("sink", sink)(sink, directory.events, state.step + 1) for sink in plan.job.metrics.sinks
        ]
        clock = Clock(plan.steps, evolve(state), Peak.of(plan))
        evaluated = evaluations_after(directory.metrics, state.step)
        return cls(plan, device, clock, sinks, open_display(plan.steps), entropy_of, state.step, evaluated)

    def step(self, report: StepReport) -> None:
        clip = self.plan.job.guard.clip
        self.clock.add(report)
        self._interval_steps += 1
        self._clipped += clip is not None and report.grad_norm > clip
        self._skipped += report.skipped
        self._last = report
        if report.skipped:
            self.display.say(
                f"step {report.step}: loss {report.loss:g}, gradient norm {report.grad_norm:g}: not finite, skipped"
            )
        if report.step % self.plan.job.metrics.every == 0 or report.step == self.plan.steps:
            self._report(report)
        elif self._rates is not None:
            self.display.show(self._line(report, self._rates), report.step, is_report=False)

    def evaluating(self, name: str, step: int) -> None:
        self.display.begin(f"step {step}: evaluating {name}")

    def evaluation(self, report: EvalReport) -> None:
        entropy = self.entropy_of(report.name)
        self.display.say(f"step {report.step}: {report.name} {against_entropy(report, entropy)}")
        if report.step == self.first_step and report.name in self.evaluated:
            return  # Made again only to show it.
        self._write(
            {
                "kind": "eval",
                "step": report.step,
                "name": report.name,
                "loss": report.loss,
                "unigram_entropy": entropy,
                "counted": report.counted,
                "seconds": report.seconds,
            }
        )

    def close(self) -> None:
        """Write the last steps of a run that ended between two reports, and close everything."""
        if self._last is not None and self._interval_steps:
            self._report(self._last)
        self.display.close()
        for sink in self.sinks:
            try:
                sink.close()
            except OSError as error:
                self.display.say(f"warning: the last metrics of {type(sink).__name__} are lost: {error}")

    def _report(self, report: StepReport) -> None:
        rates, memory = self.clock.interval(), peak_bytes_since_last(self.device)
        optional = {
            "z_loss": report.z_loss if report.z_loss else None,
            "mtp_loss": report.mtp_loss if report.mtp_loss else None,
            **routing_columns(report.routing),
            "mfu": rates.mfu,
            "mfu_causal": rates.mfu_causal,
            "hfu": rates.hfu,
            "memory_peak_bytes": memory,
            "remaining_seconds": rates.remaining_seconds,
        }
        record = {
            "kind": "step",
            "step": report.step,
            "loss": report.loss,
            "grad_norm_before_clip": report.grad_norm,
            "clipped_share": self._clipped / self._interval_steps,
            "skipped_steps": self._skipped,
            "lr": report.lr,
            "tokens": report.tokens,
            "counted": report.counted,
            "tokens_per_second": rates.tokens_per_second,
            "seconds_per_step": rates.seconds_per_step,
            "data_wait_share": rates.data_wait,
            **{name: value for name, value in optional.items() if value is not None},
        }
        self._interval_steps = self._clipped = self._skipped = 0
        self._rates = rates
        self._write(record)
        self.display.show(self._line(report, rates), report.step, is_report=True)

    def _write(self, record: Record) -> None:
        timed = {**record, "time": datetime.now(UTC).isoformat(timespec="milliseconds")}
        for sink in list(self.sinks):
            try:
                sink.write(timed)
            except OSError as error:
                # The numbers are worth less than the training that they are about.
                self.sinks.remove(sink)
                self.display.say(f"warning: {type(sink).__name__} gets no more metrics: {error}")

    def _line(self, report: StepReport, rates: Rates) -> str:
        total = "" if self.plan.steps is None else f"/{self.plan.steps:,}"
        parts = [
            f"step {report.step:,}{total}",
            f"loss {report.loss:.4f}",
            f"{count(rates.tokens_per_second)} tokens/s",
            *([f"MFU {rates.mfu:.1%}"] if rates.mfu is not None else []),
            f"lr {report.lr:.2e}",
            f"norm {report.grad_norm:.2f}",
            *([f"data wait {rates.data_wait:.0%}"] if rates.data_wait >= 0.01 else []),
            *([f"{duration(rates.remaining_seconds)} left"] if rates.remaining_seconds is not None else []),
        ]
        return "  ".join(parts)


def against_entropy(report: EvalReport, entropy: float) -> str:
    """A loss means something beside what is achieved by knowing only how often each token occurs."""
    ratio = f", ratio {report.loss / entropy:.3f}" if entropy > 0 else ""
    return (
        f"loss {report.loss:.4f} nats on {report.counted:,} labels"
        f" (unigram entropy of the same labels {entropy:.4f}{ratio})"
    )
