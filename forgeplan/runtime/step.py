"""What happens on all ranks within one step, and what do they tell one another?"""

from __future__ import annotations

import time
from math import sqrt

import torch
from attrs import define, frozen
from torch import Tensor

from forgeplan.runtime.clip import square_sum
from forgeplan.runtime.data.microbatch import NOT_COUNTED, Microbatch
from forgeplan.runtime.executor import Bundle
from forgeplan.runtime.loss import LossSums, forward_loss
from forgeplan.runtime.randomness import Randomness
from forgeplan.runtime.reports import StepReport
from forgeplan.runtime.state import TrainState


@define
class Stopwatch:
    """Time on this rank. `earlier_seconds` were spent training before this process started."""

    earlier_seconds: float
    _begin: float = 0.0
    _step: float = 0.0
    _data: float = 0.0

    def __attrs_post_init__(self) -> None:
        self._begin = time.monotonic()

    def start_step(self) -> None:
        self._step = time.monotonic()

    def data_arrived(self) -> None:
        self._data = time.monotonic()

    @property
    def wall_seconds(self) -> float:
        return self.earlier_seconds + time.monotonic() - self._begin

    @property
    def step_seconds(self) -> float:
        return time.monotonic() - self._step

    @property
    def data_seconds(self) -> float:
        return self._data - self._step


@frozen
class StepTotals:
    """What all ranks know of a step after their one reduction; equal on every rank."""

    loss: float
    z_loss: float
    grad_norm: float
    counted: int
    stop: bool
    """Whether a signal reached any rank."""
    wall_seconds: float
    """On the clock of rank 0."""
    data_seconds: float
    """Mean over ranks."""

    def report(self, state: TrainState, rate: float, accepted: bool, watch: Stopwatch) -> StepReport:
        """The report of the step that `state` has just counted."""
        return StepReport(
            step=state.step,
            loss=self.loss,
            z_loss=self.z_loss,
            grad_norm=self.grad_norm,
            lr=rate,
            tokens=state.tokens,
            counted=state.counted,
            skipped=not accepted,
            seconds=watch.step_seconds,
            data_seconds=self.data_seconds,
        )


def count_labels(microbatches: list[Microbatch], bundle: Bundle) -> Tensor:
    """Counted labels of the step over all microbatches and ranks: a scalar on the device, not yet read by the host."""
    local = sum(int((m.labels_BS != NOT_COUNTED).sum()) for m in microbatches)
    return bundle.meshes.sum(torch.tensor(local, dtype=torch.int64, device=bundle.device))


def backward(bundle: Bundle, microbatches: list[Microbatch], counted: Tensor) -> Tensor:
    """Accumulate the gradient of the step's mean loss; return this rank's sums of loss and z-loss, fp64.

    The mean is over the counted labels of the whole step; a step without any has loss and gradient zero.
    """
    sums = torch.zeros(2, dtype=torch.float64, device=bundle.device)
    divisor = counted.clamp(min=1)
    for number, microbatch in enumerate(microbatches, 1):
        is_last = number == len(microbatches)
        bundle.before_microbatch(is_last)
        found: LossSums = forward_loss(bundle, microbatch, Randomness(bundle.plan.job.seed, microbatch.sample))
        ((found.loss + found.z) / divisor).backward()
        bundle.after_microbatch(is_last)
        sums += torch.stack([found.loss.detach(), found.z.detach()])
    return sums


def reduce_totals(bundle: Bundle, sums: Tensor, counted: Tensor, watch: Stopwatch, stop: bool) -> StepTotals:
    """The step's one reduction and its one read by the host: losses, gradient norm, signals and clocks."""
    is_first = bundle.meshes.rank == 0
    local = torch.tensor(
        [float(stop), watch.wall_seconds if is_first else 0.0, watch.data_seconds], dtype=torch.float64
    ).to(bundle.device, non_blocking=True)
    everything = bundle.meshes.sum(torch.cat([sums, square_sum(bundle.model, bundle.device)[None], local]))
    loss, z, squares, stops, wall, data, num_counted = torch.cat([everything, counted.double()[None]]).tolist()
    labels = max(num_counted, 1)
    return StepTotals(
        loss=loss / labels,
        z_loss=z / labels,
        grad_norm=sqrt(squares) if squares >= 0 else squares,
        counted=int(num_counted),
        stop=stops > 0,
        wall_seconds=wall,
        data_seconds=data / bundle.meshes.mesh.world,
    )
