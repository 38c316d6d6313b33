"""Does a report say what happened since the last one?"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from attrs import evolve

from forgeplan.runtime.metrics.reporter import Reporter
from forgeplan.runtime.reports import EvalReport, StepReport
from forgeplan.runtime.run_directory import RunDirectory
from forgeplan.runtime.state import TrainState
from forgeplan.spec.plan import Metrics
from tests.runtime import tiny


def reporter(folder: Path, every: int = 2, total: int = 7, state: TrainState | None = None) -> Reporter:
    plan = tiny.execution_plan(total_steps=total, clip=tiny.share("0.01").amount)
    plan = evolve(plan, job=evolve(plan.job, metrics=Metrics(every=every, sinks=())))
    entropy_of = {"held_out": 2.0}.__getitem__
    return Reporter.open(plan, RunDirectory(folder), state or TrainState(), torch.device("cpu"), entropy_of)


def step(number: int, norm: float = 1.0, skipped: bool = False) -> StepReport:
    return StepReport(number, 3.0, 0.0, 0.0, norm, 1e-3, 32 * number, 30 * number, skipped, 0.5, 0.0)


def lines(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]


def test_the_norm_is_the_one_before_clipping_and_the_clipped_share_stands_beside_it(tmp_path: Path) -> None:
    with_clip = reporter(tmp_path)
    for report in (step(1, 0.005), step(2, 1.25), step(3, 2.0), step(4, 3.0)):
        with_clip.step(report)
    with_clip.close()
    found = lines(tmp_path)
    assert [r["grad_norm_before_clip"] for r in found] == [1.25, 3.0]
    assert [r["clipped_share"] for r in found] == [0.5, 1.0]


def test_skipped_steps_are_counted_in_their_interval(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with_skips = reporter(tmp_path)
    for report in (step(1, float("nan"), skipped=True), step(2), step(3), step(4)):
        with_skips.step(report)
    with_skips.close()
    assert [r["skipped_steps"] for r in lines(tmp_path)] == [1, 0]
    assert "step 1: loss 3, gradient norm nan: not finite, skipped" in capsys.readouterr().out


def test_the_last_step_is_reported_whether_the_run_ends_or_stops(tmp_path: Path) -> None:
    ended, stopped = reporter(tmp_path / "ended", total=3), reporter(tmp_path / "stopped", total=99)
    for number in (1, 2, 3):
        ended.step(step(number))
        stopped.step(step(number))
    ended.close()
    stopped.close()
    assert [r["step"] for r in lines(tmp_path / "ended")] == [2, 3]
    assert [r["step"] for r in lines(tmp_path / "stopped")] == [2, 3]


def test_memory_peaks_are_per_interval(tmp_path: Path) -> None:
    peaks = reporter(tmp_path, every=1)
    peaks.step(step(1))
    held = torch.ones(60_000_000)
    held.add_(1)
    peaks.step(step(2))
    del held
    peaks.step(step(3))  # it was still held at the last report
    peaks.step(step(4))
    peaks.close()
    before, during, _, after = (r["memory_peak_bytes"] for r in lines(tmp_path))
    assert during - before > 200_000_000
    assert during - after > 200_000_000


def test_an_evaluation_stands_beside_the_entropy_of_its_labels(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    evaluated = reporter(tmp_path)
    evaluated.evaluation(EvalReport("held_out", 5, 1.5, 1234, 0.25))
    evaluated.close()
    (found,) = lines(tmp_path)
    assert (found["kind"], found["loss"], found["unigram_entropy"], found["counted"]) == ("eval", 1.5, 2.0, 1234)
    assert "held_out loss 1.5000 nats on 1,234 labels (unigram entropy of the same labels 2.0000, ratio 0.750)" in (
        capsys.readouterr().out
    )


def test_an_evaluation_that_is_made_again_is_shown_and_not_written_twice(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first = reporter(tmp_path)
    first.evaluation(EvalReport("held_out", 4, 3.0, 100, 0.1))
    first.close()
    again = reporter(tmp_path, state=TrainState(step=4))
    again.evaluation(EvalReport("held_out", 4, 3.0, 100, 0.1))
    again.evaluation(EvalReport("held_out", 6, 2.5, 100, 0.1))
    again.close()
    assert [r["step"] for r in lines(tmp_path)] == [4, 6]
    assert capsys.readouterr().out.count("step 4: held_out loss 3.0000") == 2


def test_a_disk_that_is_full_at_the_end_is_no_failure_of_the_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    class Full:
        def write(self, record: dict[str, Any]) -> None: ...

        def close(self) -> None:
            raise OSError(28, "No space left on device")

    ending = reporter(tmp_path)
    ending.sinks.append(Full())
    ending.step(step(1))
    ending.close()
    assert "warning: the last metrics of Full are lost: [Errno 28] No space left on device" in capsys.readouterr().out
