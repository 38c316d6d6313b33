"""How do microbatches pass the stages of a pipeline?

Training follows a schedule of torch.distributed.pipelining. Its forward-only mode does not work for schedules in the
shape of a V, and infers shapes anew at each change of mode; an evaluation therefore has a loop of its own.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any

import torch
from attrs import define, field
from torch import Tensor, distributed, nn
from torch.distributed.pipelining import PipelineStage, schedules

from forgeplan.diagnostics.refusal import Refusal
from forgeplan.plan.operations import Pp
from forgeplan.plan.stages import stages_of_rank
from forgeplan.runtime.data.microbatch import Microbatch
from forgeplan.runtime.executor import AS_PLANNED, Bundle
from forgeplan.runtime.loss import LossSums, loss_of
from forgeplan.runtime.parallel.collectives import Group
from forgeplan.runtime.precision import dtype_of
from forgeplan.runtime.step import Sums
from forgeplan.spec.operation.pp import ONE_STAGE

# B sequences of a microbatch, N of all microbatches of a step, S positions, D model width, V logits of this rank

SCHEDULES: dict[str, Any] = {
    "gpipe": schedules.ScheduleGPipe,
    "one_f_one_b": schedules.Schedule1F1B,
    "looped_bfs": schedules.ScheduleLoopedBFS,
    "interleaved": schedules.ScheduleInterleaved1F1B,
    "zero_bubble": schedules.ScheduleInterleavedZeroBubble,
    "zbv": schedules.ScheduleZBVZeroBubble,
    "dualpipe_v": schedules.ScheduleDualPipeV,
}


class Stage(PipelineStage):
    """torch's stage, which also tells when it has added to gradients."""

    def __init__(self, *args: Any, after_backward: Callable[[], object], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.after_backward = after_backward

    def backward_one_chunk(self, *args: Any, **kwargs: Any) -> None:
        super().backward_one_chunk(*args, **kwargs)
        self.after_backward()

    def backward_weight_one_chunk(self, *args: Any, **kwargs: Any) -> None:
        super().backward_weight_one_chunk(*args, **kwargs)
        self.after_backward()


@define
class Pipeline:
    """The stages of this rank among all, by number, in the order of forward.

    The modules take what the stage before returned, or tokens, with `positions_BS`, `documents_BS` and `samples_B` as
    keywords where there are any, and return one tensor: each computes positions and masks itself.
    """

    modules: dict[int, nn.Module]
    rank_of: list[int]
    """The rank in the pipeline of every stage."""
    group: Group
    schedule: Any
    _objective: Any = field(default=None, init=False)
    """What a microbatch adds to the loss of the step in progress, from logits (B, S, V) and labels (B, S)."""

    @classmethod
    def of(cls, operation: Pp, modules: dict[int, nn.Module], bundle: Bundle) -> Pipeline:
        """Raises Refusal FP1009 for a schedule that torch does not make of these stages and microbatches."""
        group = bundle.meshes.group("pp")
        found = cls(modules, ranks_of_stages(operation, group.size), group, schedule=None)
        stages = [
            Stage(
                module,
                number,
                len(operation.stages),
                bundle.device,
                group=group.process_group,
                # Operations that follow decide what is to be done then.
                after_backward=lambda: bundle.after_microbatch(False),
            )
            for number, module in modules.items()
        ]
        # At any error, a lost connection too, torch logs the whole order of work, a line for each of its steps.
        logging.getLogger(schedules.__name__).setLevel(logging.CRITICAL)
        try:
            found.schedule = SCHEDULES[operation.schedule](
                stages[0] if operation.schedule in ONE_STAGE else stages,
                bundle.plan.job.batch.accumulation,
                loss_fn=found._loss,
                scale_grads=False,
            )
        except ValueError as error:
            raise Refusal(
                AS_PLANNED,
                f"torch {torch.__version__} does not make the pipeline of the plan: {error}",
                "the plan was compiled by another version, or altered: compile it again",
            ) from error
        return found

    def train(self, bundle: Bundle, microbatches: list[Microbatch], divisor: Tensor, number: int) -> Sums:
        """Forward and backward of all microbatches of a step; the losses are those of the last stage, on its rank."""
        losses: list[LossSums] = []

        def objective(logits_BSV: Tensor, labels_BS: Tensor) -> Tensor:
            found = loss_of(bundle, logits_BSV, labels_BS)
            # Without the graph, which would keep what backward needs until the end of the step.
            losses.append(found._replace(loss=found.loss.detach(), z=found.z.detach()))
            return found.objective(divisor, number)

        self._objective = objective
        tokens_NS = torch.cat([m.tokens_BS for m in microbatches])
        labels_NS = torch.cat([m.labels_BS for m in microbatches])
        self._step(
            *([tokens_NS.to(bundle.device, non_blocking=True)] if self._has(0) else []),
            target=labels_NS.to(bundle.device, non_blocking=True) if self._has(-1) else None,
            return_outputs=False,
            **inputs_of(microbatches, bundle.device, has_dropout=True),
        )
        bundle.after_microbatch(True)
        sums = Sums.none(bundle.device)
        # Before its first step torch asks for a loss more, to learn shapes.
        for found in losses[-len(microbatches) :]:
            sums.add(found)
        return sums

    def _step(self, *args: Any, **kwargs: Any) -> None:
        """Raises what a stage raised: torch tells which one failed and with what tensors, in place of why."""
        cause: BaseException | None = None
        try:
            self.schedule.step(*args, **kwargs)
        except RuntimeError as error:
            cause = error.__cause__ or error
        if cause is not None:
            raise cause

    def _loss(self, logits_BSV: Tensor, labels_BS: Tensor) -> Tensor:
        loss: Tensor = self._objective(logits_BSV, labels_BS)
        return loss

    def _has(self, number: int) -> bool:
        """Whether a stage is here; −1 is the last."""
        return number % len(self.rank_of) in self.modules

    def forward_only(self, bundle: Bundle, microbatches: Iterable[Microbatch]) -> Iterator[LossSums]:
        """The losses of every microbatch, on the rank of the last stage; the other ranks get none. Without dropout."""
        coming = iter(microbatches)
        while some := list(islice(coming, self.group.size)):
            yield from self._passed(bundle, some)

    def _passed(self, bundle: Bundle, microbatches: list[Microbatch]) -> Iterator[LossSums]:
        """All microbatches through a stage, then through the next: a rank works on one while its peers do on others."""
        under_way: list[Any] = []
        passed: list[Tensor] = []
        for number, module in self.modules.items():
            entering = self._entering(bundle, number, microbatches, passed)
            passed = []
            for microbatch, x in zip(microbatches, entering, strict=True):
                y = module(x, **inputs_of([microbatch], bundle.device, has_dropout=False))
                if number + 1 == len(self.rank_of):
                    yield loss_of(bundle, y, microbatch.labels_BS.to(bundle.device, non_blocking=True))
                elif self.rank_of[number + 1] == self.group.index:
                    passed.append(y)
                else:
                    under_way.append(self._send(y, self.rank_of[number + 1]))
        for work in under_way:
            work.wait()

    def _entering(
        self, bundle: Bundle, number: int, microbatches: list[Microbatch], passed: list[Tensor]
    ) -> Iterator[Tensor]:
        """What enters a stage, microbatch by microbatch; `passed` is what left the stage before, if it is here too."""
        if number == 0:
            return (m.tokens_BS.to(bundle.device, non_blocking=True) for m in microbatches)
        if self.rank_of[number - 1] == self.group.index:
            return iter(passed)
        # All at once, before anything is sent: between two ranks NCCL carries out one after the other.
        expected = [self._receive(hidden_states(bundle, m), self.rank_of[number - 1]) for m in microbatches]
        return (_arrived(buffer, work) for buffer, work in expected)

    def _send(self, x_BSD: Tensor, peer: int) -> Any:
        return distributed.isend(x_BSD.contiguous(), group=self.group.process_group, group_dst=peer)

    def _receive(self, buffer_BSD: Tensor, peer: int) -> tuple[Tensor, Any]:
        return buffer_BSD, distributed.irecv(buffer_BSD, group=self.group.process_group, group_src=peer)


def ranks_of_stages(operation: Pp, pp: int) -> list[int]:
    """The rank in the pipeline of every stage."""
    found = {
        number: rank
        for rank in range(pp)
        for number in stages_of_rank(operation.schedule, operation.stages_per_rank, pp, rank)
    }
    return [found[number] for number in range(len(operation.stages))]


def inputs_of(microbatches: list[Microbatch], device: torch.device, *, has_dropout: bool) -> dict[str, Tensor]:
    """What every stage needs to know of the sequences; torch divides it by microbatches along dim 0."""
    found: dict[str, list[Tensor | None]] = {
        "positions_BS": [m.positions_BS for m in microbatches],
        "documents_BS": [m.documents_BS for m in microbatches],
        "samples_B": [m.sample + torch.arange(len(m.tokens_BS)) if has_dropout else None for m in microbatches],
    }
    known = {name: [part for part in parts if part is not None] for name, parts in found.items()}
    return {name: torch.cat(parts).to(device, non_blocking=True) for name, parts in known.items() if parts}


def hidden_states(bundle: Bundle, microbatch: Microbatch) -> Tensor:
    """Memory for what one stage hands to the next of a microbatch: this rank's positions, in the dtype of compute."""
    job, axes = bundle.plan.job, bundle.axes
    batch, length = microbatch.tokens_BS.shape
    own = length // (axes.cp.group.size * axes.tp.parts)
    return torch.empty(batch, own, job.model.dim, dtype=dtype_of(job.precision.compute), device=bundle.device)


def _arrived(buffer: Tensor, work: Any) -> Tensor:
    work.wait()
    return buffer
