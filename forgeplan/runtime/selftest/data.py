"""What does a tiny plan train on, and who listens?"""

from __future__ import annotations

from typing import Any

import torch

from forgeplan.plan.execution_plan import ExecutionPlan
from forgeplan.runtime.data.microbatch import NOT_COUNTED, Microbatch


def sequence(sample: int, length: int, vocab: int, packed: bool) -> tuple[torch.Tensor, ...]:
    """Tokens, labels, positions and documents of one sample: a function of its index; label counts differ a lot."""
    generator = torch.Generator().manual_seed(1000 + sample)
    ids = torch.randint(vocab, (length + 1,), generator=generator)
    tokens, labels = ids[:-1], ids[1:].clone()
    labels[torch.rand(length, generator=generator) < (sample % 5) / 5] = NOT_COUNTED
    documents = torch.zeros(length, dtype=torch.int64)
    positions = torch.arange(length)
    if packed:
        cut = 1 + int(torch.randint(length - 2, (), generator=generator))
        documents[cut:], positions[cut:] = 1, torch.arange(length - cut)
        labels[cut - 1] = NOT_COUNTED
    return tokens, labels, positions, documents


class TinyData:
    """Random sequences in an order of their own; each rank gets its share of every step as contiguous microbatches."""

    def __init__(self, plan: ExecutionPlan, data_rank: int = 0, packed: bool = False) -> None:
        self.plan, self.data_rank, self.packed = plan, data_rank, packed

    def microbatch(self, first: int) -> Microbatch:
        batch = self.plan.job.batch
        rows = [
            sequence(first + row, batch.length, self.plan.job.model.vocab, self.packed) for row in range(batch.micro)
        ]
        tokens, labels, positions, documents = (torch.stack(column) for column in zip(*rows, strict=True))
        return Microbatch(tokens, labels, positions if self.packed else None, documents if self.packed else None, first)

    def microbatches(self, first_sample: int) -> list[Microbatch]:
        batch = self.plan.job.batch
        first = first_sample + self.data_rank * batch.accumulation * batch.micro
        return [self.microbatch(first + i * batch.micro) for i in range(batch.accumulation)]


class Quiet:
    """Services that keep what they hear and do nothing."""

    def __init__(self, stop_after: int | None = None) -> None:
        self.reports: list[Any] = []
        self.saves: list[int] = []
        self.stop_after = stop_after

    def stop_requested(self) -> bool:
        return self.stop_after is not None and len(self.reports) + 1 >= self.stop_after

    def on_step(self, report: Any) -> None:
        self.reports.append(report)

    def evaluate_if_due(self, passage: Any, state: Any) -> None: ...

    def save_if_due(self, passage: Any, state: Any) -> None:
        self.saves.append(state.step)
