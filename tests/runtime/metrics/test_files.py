"""Do metrics.jsonl and TensorBoard say each step once, in numbers that other programs read?"""

from __future__ import annotations

import json
from math import inf, nan
from pathlib import Path

import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from forgeplan.runtime.metrics.jsonl import MetricsFile
from forgeplan.runtime.metrics.records import Record
from forgeplan.runtime.metrics.tensorboard import build_tensorboard
from forgeplan.spec.sink.tensorboard import TensorBoard


def record(step: int, loss: float) -> Record:
    return {"kind": "step", "step": step, "loss": loss, "time": "2026-01-01T00:00:00"}


def strictly(text: str) -> list[Record]:
    def refuse(name: str) -> None:
        raise ValueError(name)

    return [json.loads(line, parse_constant=refuse) for line in text.splitlines()]


def test_what_is_not_finite_is_null_and_named(tmp_path: Path) -> None:
    file = MetricsFile.open_after(tmp_path / "metrics.jsonl", 0)
    file.write({**record(1, nan), "norm": -inf, "lr": 0.5})
    file.close()
    (found,) = strictly((tmp_path / "metrics.jsonl").read_text())
    assert (found["loss"], found["norm"], found["lr"]) == (None, None, 0.5)
    assert found["nonfinite"] == {"loss": "nan", "norm": "-inf"}


def test_steps_that_are_trained_again_stand_there_once(tmp_path: Path) -> None:
    """Stopped at 12, last checkpoint at 10, resumed to 15; the crash cut a line off."""
    path = tmp_path / "metrics.jsonl"
    for first, last, resumed in ((1, 12, 0), (11, 15, 10)):
        file = MetricsFile.open_after(path, resumed)
        for step in range(first, last + 1):
            file.write(record(step, 100 * resumed + step))
        file.close()
        if resumed == 0:
            path.write_text(path.read_text() + '{"kind": "step", "step": 1')
    found = strictly(path.read_text())
    assert [r["step"] for r in found] == list(range(1, 16))
    assert [r["loss"] for r in found if r["step"] > 10] == [1011, 1012, 1013, 1014, 1015]


def test_tensorboard_sees_each_step_once_after_a_resume(tmp_path: Path) -> None:
    for first, last in ((1, 12), (11, 15)):
        events = build_tensorboard(TensorBoard(), tmp_path, first)
        for step in range(first, last + 1):
            events.write({**record(step, 1000 * first + step), "skipped": True})
        events.close()
    reader = EventAccumulator(str(tmp_path), size_guidance={"scalars": 0})
    reader.Reload()
    assert reader.Tags()["scalars"] == ["step/loss"]
    found = {event.step: event.value for event in reader.Scalars("step/loss")}
    assert [event.step for event in reader.Scalars("step/loss")] == list(range(1, 16))
    assert found[10] == 1010
    assert found[11] == 11_011


@pytest.mark.parametrize("name", ["held_out", "web"])
def test_evaluations_have_their_own_tags(tmp_path: Path, name: str) -> None:
    events = build_tensorboard(TensorBoard(), tmp_path, 1)
    events.write({"kind": "eval", "name": name, "step": 5, "loss": 2.5})
    events.close()
    reader = EventAccumulator(str(tmp_path))
    reader.Reload()
    assert [(e.step, e.value) for e in reader.Scalars(f"eval/{name}/loss")] == [(5, 2.5)]
