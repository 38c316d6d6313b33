"""How long does a rank of torch's pipeline schedules wait? Their own order of work, played through with a clock.

A forward takes one tick, and so does each half of a backward; a rank begins what is next in its order as soon as what
it needs is there.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Any

from torch.distributed.pipelining import schedules
from torch.distributed.pipelining.schedules import _Action, _ComputationType
from torch.distributed.pipelining.stage import _PipelineStageBase
from torch.nn import Module

FORWARD, BACKWARD, INPUTS, WEIGHTS = (
    _ComputationType.FORWARD,
    _ComputationType.FULL_BACKWARD,
    _ComputationType.BACKWARD_INPUT,
    _ComputationType.BACKWARD_WEIGHT,
)
TICKS = {FORWARD: 1, BACKWARD: 2, INPUTS: 1, WEIGHTS: 1}
CLASSES = {
    "gpipe": schedules.ScheduleGPipe,
    "looped_bfs": schedules.ScheduleLoopedBFS,
    "interleaved": schedules.ScheduleInterleaved1F1B,
    "zero_bubble": schedules.ScheduleInterleavedZeroBubble,
    "zbv": schedules.ScheduleZBVZeroBubble,
    "dualpipe_v": schedules.ScheduleDualPipeV,
}


class NumbersOnly(_PipelineStageBase):
    """What a schedule reads to make its order: numbers, no module."""

    def __init__(self, index: int, num_stages: int, pp: int) -> None:
        self.stage_index, self.num_stages, self.group_rank, self.group_size = index, num_stages, 0, pp
        self.has_backward, self.submod = True, Module()

    def _create_grad_recv_info(self, act_send_info: Any) -> tuple[Any, ...]:
        return ()

    def _prepare_forward_infra(self, *args: Any) -> None: ...

    def _prepare_backward_infra(self, *args: Any) -> None: ...


def order(schedule: str, pp: int, stages_per_rank: int, microbatches: int) -> dict[int, list[_Action]]:
    """What each rank does, in order, as torch has it. Raises ValueError for a number that torch refuses.

    torch's own account of 1F1B begins at the second microbatch on the last rank, and is not what it runs: that order is
    written here as the paper of Narayanan et al. draws it.
    """
    if schedule == "one_f_one_b":
        return {rank: list(_one_f_one_b(pp, rank, microbatches)) for rank in range(pp)}
    stages = [NumbersOnly(index, pp * stages_per_rank, pp) for index in range(stages_per_rank)]
    one = schedule == "gpipe"
    made = CLASSES[schedule](stages[0] if one else stages, microbatches, loss_fn=len)
    found = made._get_pipeline_order() if one else made.pipeline_order
    return {rank: list(_flat(actions)) for rank, actions in found.items()}


def _one_f_one_b(pp: int, rank: int, microbatches: int) -> Iterator[_Action]:
    ahead = pp - 1 - rank
    yield from (_Action(rank, FORWARD, m) for m in range(ahead))
    for done in range(microbatches - ahead):
        yield from (_Action(rank, FORWARD, ahead + done), _Action(rank, BACKWARD, done))
    yield from (_Action(rank, BACKWARD, m) for m in range(microbatches - ahead, microbatches))


def _flat(actions: list[_Action | None]) -> Iterator[_Action]:
    """Without pauses, without what only communicates, and with the parts of overlapped work one by one."""
    for action in actions:
        if action is not None and action.sub_actions:
            yield from _flat(list(action.sub_actions))
        elif action is not None and action.computation_type in TICKS:
            yield action


def idle_share(order: dict[int, list[_Action]]) -> Fraction:
    """Mean share of the time until the last rank is ready in which a rank waits."""
    last = max(action.stage_index for actions in order.values() for action in actions)
    ready: dict[_Action, int] = {}
    clock = dict.fromkeys(order, 0)
    left = {rank: list(actions) for rank, actions in order.items()}
    while any(left.values()):
        before = len(ready)
        for rank, actions in left.items():
            while actions and all(any(n in ready for n in needed) for needed in _needs(actions[0], last)):
                action = actions.pop(0)
                waits = [ready[n] for needed in _needs(action, last) for n in needed if n in ready]
                clock[rank] = max([clock[rank], *waits]) + TICKS[action.computation_type]
                ready[action] = clock[rank]
        assert len(ready) > before, "no rank can go on"
    work = sum(TICKS[action.computation_type] for action in ready)
    return 1 - Fraction(work, len(order) * max(clock.values()))


def _needs(action: _Action, last: int) -> Iterator[list[_Action]]:
    """Of each list one action must be done."""
    stage, kind, microbatch = action.stage_index, action.computation_type, action.microbatch_index
    if kind == FORWARD and stage:
        yield [_Action(stage - 1, FORWARD, microbatch)]
    if kind in (BACKWARD, INPUTS):
        yield [_Action(stage, FORWARD, microbatch)]
    if kind in (BACKWARD, INPUTS) and stage < last:
        yield [_Action(stage + 1, BACKWARD, microbatch), _Action(stage + 1, INPUTS, microbatch)]
    if kind == WEIGHTS:
        yield [_Action(stage, INPUTS, microbatch)]
