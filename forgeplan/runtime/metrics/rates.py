"""How fast is a run, and when will it end?"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from time import monotonic

from attrs import define, field, frozen

from forgeplan.plan.execution_plan import ExecutionPlan
from forgeplan.runtime.reports import StepReport
from forgeplan.runtime.state import TrainState


@frozen
class Peak:
    """What the devices could compute at best, and what a token asks of them.

    `flops_per_token` is 6·(parameters in matrix products) + 12·layers·heads·head width·length, forward and backward;
    causal attention needs half of the second term. `hardware_factor` is what recompute adds: hardware computes it
    again.
    """

    flops_per_second: Fraction
    flops_per_token: int
    flops_per_token_causal: int
    hardware_factor: float

    @classmethod
    def of(cls, plan: ExecutionPlan) -> Peak | None:
        """None where the plan states no peak for its compute dtype: a utilisation of an unknown peak is no number."""
        cluster, estimates = plan.job.cluster, plan.estimates
        if cluster.bf16 is None or plan.job.precision.compute != "bf16":
            return None
        recomputes = any(op.name == "recompute" and getattr(op, "mode", "") == "full" for op in plan.program)
        return cls(
            Fraction(cluster.bf16) * plan.mesh.world,
            estimates.flops_per_token,
            estimates.flops_per_token_causal,
            4 / 3 if recomputes else 1.0,
        )


@frozen
class Rates:
    """Of one interval between reports. `remaining_seconds` is None where no number of steps bounds the run."""

    tokens_per_second: float
    seconds_per_step: float
    data_wait: float
    remaining_seconds: float | None
    mfu: float | None
    mfu_causal: float | None
    hfu: float | None


@define
class Clock:
    """Adds up steps. Only what this session trained counts, never what a resumed checkpoint brought along."""

    total_steps: int | None
    state: TrainState
    """Where this session started; a copy."""
    peak: Peak | None = None
    now: Callable[[], float] = monotonic
    session_steps: int = 0
    session_step_seconds: float = 0.0
    session_tokens: int = 0
    _reported_tokens: int = field(init=False)
    _started: float = field(init=False)
    _steps: list[StepReport] = field(init=False, factory=list)

    def __attrs_post_init__(self) -> None:
        self._started = self.now()
        self._reported_tokens = self.state.tokens

    def add(self, report: StepReport) -> None:
        self._steps.append(report)
        self.session_steps += 1
        self.session_tokens = report.tokens - self.state.tokens
        self.session_step_seconds += report.seconds

    @property
    def session_tokens_per_second(self) -> float:
        return self.session_tokens / max(self.session_step_seconds, 1e-9)

    def remaining_seconds(self) -> float | None:
        """From this session's rate, evaluations and saves included."""
        if self.total_steps is None or not self.session_steps:
            return None
        left = self.total_steps - self.state.step - self.session_steps
        return max(left, 0) * (self.now() - self._started) / self.session_steps

    def interval(self) -> Rates:
        """Rates of the steps since the last call."""
        steps, self._steps = self._steps, []
        seconds = max(sum(s.seconds for s in steps), 1e-9)
        tokens = steps[-1].tokens if steps else self._reported_tokens
        rate = (tokens - self._reported_tokens) / seconds
        self._reported_tokens = tokens
        peak = self.peak
        used = None if peak is None else float(rate * peak.flops_per_token / peak.flops_per_second)
        return Rates(
            tokens_per_second=rate,
            seconds_per_step=seconds / max(len(steps), 1),
            data_wait=sum(s.data_seconds for s in steps) / seconds,
            remaining_seconds=self.remaining_seconds(),
            mfu=used,
            mfu_causal=None if peak is None else float(rate * peak.flops_per_token_causal / peak.flops_per_second),
            hfu=None if peak is None or used is None else used * peak.hardware_factor,
        )
