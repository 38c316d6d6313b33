"""How do the tests of data open it?"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from forgeplan.plan.execution_plan import ExecutionPlan
from forgeplan.runtime.data.eval_data import EvalData
from forgeplan.runtime.data.train_data import TrainData


@pytest.fixture
def train_data(tmp_path: Path) -> Iterator[Callable[..., TrainData]]:
    """`train_data(plan, data_rank=0)` with this test's folder as project and cache; closed at the end."""
    opened: list[TrainData] = []

    def open_(plan: ExecutionPlan, data_rank: int = 0) -> TrainData:
        opened.append(TrainData(plan, data_rank=data_rank, project=tmp_path, cache=tmp_path / "cache"))
        return opened[-1]

    yield open_
    for data in opened:
        data.close()


@pytest.fixture
def eval_data(tmp_path: Path) -> Callable[..., EvalData]:
    """`eval_data(plan, name, data_rank=0)` with this test's folder as project and cache."""

    def open_(plan: ExecutionPlan, name: str, data_rank: int = 0) -> EvalData:
        return EvalData(plan, name, data_rank=data_rank, project=tmp_path, cache=tmp_path / "cache")

    return open_
