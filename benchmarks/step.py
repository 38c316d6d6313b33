"""What does a step of the executor cost beside the same step in bare PyTorch? `python -m benchmarks.step`

Method: the model of `plans/quickstart.forge` on one process and one thread, random tokens made beforehand. Blocks of
steps of both loops take turns, so that a busy machine slows both; printed are the processor time of the median block of
each and their ratio. The executor also checks for non-finite values, counts labels and reports each step.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import torch
from attrs import evolve

from benchmarks.bare import Decoder, Loop
from forgeplan.analysis import analyse
from forgeplan.compiler import emit
from forgeplan.plan.execution_plan import ExecutionPlan
from forgeplan.runtime.data.microbatch import Microbatch
from forgeplan.runtime.executor import build
from forgeplan.runtime.optim.optimizer import build_optimizer
from forgeplan.runtime.state import TrainState
from forgeplan.runtime.train import train

PLAN = Path(__file__).parents[1] / "plans" / "quickstart.forge"
STEPS_OF_A_BLOCK = 10
BLOCKS = 11


class Made:
    """The same random microbatch at every step."""

    def __init__(self, plan: ExecutionPlan) -> None:
        batch = plan.job.batch
        rows = torch.randint(plan.job.model.vocab, (batch.micro, batch.length + 1))
        self.batch = Microbatch(rows[:, :-1].contiguous(), rows[:, 1:].contiguous())

    def microbatches(self, first_sample: int) -> list[Microbatch]:
        return [self.batch]


class Silent:
    """Services that do nothing."""

    def stop_requested(self) -> bool:
        return False

    def on_step(self, report: Any) -> None: ...

    def evaluate_if_due(self, passage: Any, state: Any) -> None: ...

    def save_if_due(self, passage: Any, state: Any) -> None: ...


def main() -> None:
    torch.set_num_threads(1)
    torch.manual_seed(0)
    analysis = analyse(str(PLAN), overrides=["cluster.devices_per_node=1", "batch.micro=4 sequences"])
    plan = emit(analysis.jobs[0])
    data = Made(plan)
    ours, bare = executor_block(plan, data), bare_block(plan, data)
    ours(), bare()
    times = [(processor_seconds(ours), processor_seconds(bare)) for _ in range(BLOCKS)]
    ours_ms, bare_ms = (median(column) / STEPS_OF_A_BLOCK * 1000 for column in zip(*times, strict=True))
    print(f"{plan.estimates.num_parameters:,} parameters, {plan.estimates.tokens_per_step:,} tokens a step, one thread")
    print(f"executor      {ours_ms:7.2f} ms a step")
    print(f"bare PyTorch  {bare_ms:7.2f} ms a step")
    print(f"ratio         {median(a / b for a, b in times):7.3f}")


def executor_block(plan: ExecutionPlan, data: Made) -> Callable[[], None]:
    bundle = build(plan, torch.device("cpu"))
    optimizer, state = build_optimizer(bundle), TrainState()

    def block() -> None:
        until = evolve(plan, steps=state.step + STEPS_OF_A_BLOCK)
        train(until, bundle, optimizer, data, state, Silent())

    return block


def bare_block(plan: ExecutionPlan, data: Made) -> Callable[[], None]:
    m = plan.job.model
    loop = Loop(Decoder(m.vocab, m.layers, m.dim, m.heads, m.kv_heads, m.ffn, m.context))

    def block() -> None:
        for _ in range(STEPS_OF_A_BLOCK):
            loop.step(data.batch.tokens_BS, data.batch.labels_BS)

    return block


def processor_seconds(block: Callable[[], None]) -> float:
    start = time.process_time()
    block()
    return time.process_time() - start


if __name__ == "__main__":
    main()
