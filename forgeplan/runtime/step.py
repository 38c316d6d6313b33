"""What happens on all ranks within one step, and what do they tell one another?"""

from __future__ import annotations

import time
from math import sqrt

import torch
from attrs import define, field, frozen
from torch import Tensor

from forgeplan.runtime.clip import square_sum
from forgeplan.runtime.data.microbatch import NOT_COUNTED, Microbatch
from forgeplan.runtime.executor import Bundle
from forgeplan.runtime.loss import LossSums, forward_loss
from forgeplan.runtime.randomness import Randomness
from forgeplan.runtime.reports import RoutingTotals, StepReport
from forgeplan.runtime.routing import flat, totals_of
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


@define
class Sums:
    """What a rank adds up over the microbatches of a step, fp64, on the device."""

    loss: Tensor
    z: Tensor
    mtp: Tensor
    routing: dict[str, Tensor] = field(factory=dict)
    """By layer: see `flat`."""

    @classmethod
    def none(cls, device: torch.device) -> Sums:
        return cls(*torch.zeros(3, dtype=torch.float64, device=device))

    def add(self, found: LossSums) -> None:
        self.loss = self.loss + found.loss.detach()
        self.z = self.z + found.z.detach()
        self.mtp = self.mtp + found.mtp.detach()
        for layer, routing in found.routing.items():
            self.routing[layer] = self.routing.get(layer, 0) + flat(routing)


@frozen
class StepTotals:
    """What all ranks know of a step after their one reduction; equal on every rank."""

    loss: float
    z_loss: float
    mtp_loss: float
    grad_norm: float
    counted: int
    stop: bool
    """Whether a signal reached any rank."""
    wall_seconds: float
    """On the clock of rank 0."""
    data_seconds: float
    """Mean over ranks."""
    routing: dict[str, RoutingTotals]
    """By layer."""

    def counts(self, device: torch.device) -> dict[str, Tensor]:
        """Assignments to each expert, by block."""
        found = {block: torch.tensor(found.counts) for block, found in self.routing.items()}
        # Not made there: the host would wait, for each layer, until the update before it is done.
        return {block: counts_E.to(device, non_blocking=True) for block, counts_E in found.items()}

    def report(self, state: TrainState, rate: float, accepted: bool, watch: Stopwatch) -> StepReport:
        """The report of the step that `state` has just counted."""
        return StepReport(
            step=state.step,
            loss=self.loss,
            z_loss=self.z_loss,
            mtp_loss=self.mtp_loss,
            grad_norm=self.grad_norm,
            lr=rate,
            tokens=state.tokens,
            counted=state.counted,
            skipped=not accepted,
            seconds=watch.step_seconds,
            data_seconds=self.data_seconds,
            routing=self.routing,
        )


def count_labels(microbatches: list[Microbatch], bundle: Bundle) -> Tensor:
    """Counted labels of the step over all microbatches and ranks: a scalar on the device, not yet read by the host."""
    own = bundle.axes.cp.own
    local = sum(int((own(m.labels_BS) != NOT_COUNTED).sum()) for m in microbatches)
    local *= bundle.meshes.is_counted
    # Not made there: the host would wait until the update of the step before is done.
    return bundle.meshes.sum(torch.tensor(local, dtype=torch.int64).to(bundle.device, non_blocking=True))


def backward(bundle: Bundle, microbatches: list[Microbatch], counted: Tensor) -> Sums:
    """Accumulate the gradient of the step's loss; return this rank's sums.

    The mean is over the counted labels of the whole step; a step without any has loss and gradient zero. Losses of
    routers are means over the microbatches of all data ranks.
    """
    divisor, number = counted.clamp(min=1), len(microbatches) * bundle.plan.mesh.data_ranks
    sums = (bundle.schedule or one_after_the_other)(bundle, microbatches, divisor, number)
    for complete in bundle.complete_gradients:
        complete()
    return sums


def one_after_the_other(bundle: Bundle, microbatches: list[Microbatch], divisor: Tensor, number: int) -> Sums:
    """Forward and backward of each microbatch in turn."""
    sums = Sums.none(bundle.device)
    for index, microbatch in enumerate(microbatches, 1):
        is_last = index == len(microbatches)
        bundle.before_microbatch(is_last)
        found = forward_loss(bundle, microbatch, Randomness(bundle.plan.job.seed, microbatch.sample))
        found.objective(divisor, number).backward()
        bundle.after_microbatch(is_last)
        sums.add(found)
    return sums


def reduce_totals(bundle: Bundle, sums: Sums, counted: Tensor, watch: Stopwatch, stop: bool) -> StepTotals:
    """The step's one reduction and its one read by the host: losses, gradient norm, routing, signals and clocks."""
    is_first, tp = bundle.meshes.rank == 0, bundle.axes.tp
    # All tp ranks compute the loss of all their positions; tokens are routed by one of them, or by each its own.
    speaks = tp.group.index == 0
    local = torch.tensor(
        [float(stop), watch.wall_seconds if is_first else 0.0, watch.data_seconds], dtype=torch.float64
    ).to(bundle.device, non_blocking=True)
    squares = square_sum(bundle.gradients(), bundle.device)
    mine = [torch.stack([sums.loss, sums.z, sums.mtp]) * speaks, squares[None], local]
    routed = [vector * (speaks or tp.parts > 1) for vector in sums.routing.values()]
    everything = bundle.meshes.sum(torch.cat([*mine, *routed]))
    read = torch.cat([counted.double()[None], everything]).tolist()
    num_counted, loss, z, mtp, square, stops, wall, data, *rest = read
    labels, mesh = max(num_counted, 1), bundle.meshes.mesh
    routing = {}
    for layer, vector in sums.routing.items():
        routing[layer] = totals_of(rest[: len(vector)], bundle.plan)
        rest = rest[len(vector) :]
    return StepTotals(
        loss=loss / labels,
        z_loss=z / labels,
        mtp_loss=mtp / labels,
        grad_norm=sqrt(square) if square >= 0 else square,
        counted=int(num_counted),
        stop=stops > 0,
        wall_seconds=wall,
        data_seconds=data / mesh.world,
        routing=routing,
    )
