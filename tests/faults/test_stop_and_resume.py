"""Does a run that is stopped and started again end where an undisturbed one does, bit for bit?"""

from __future__ import annotations

import json
import os
import signal
import time
from pathlib import Path

import pytest

from tests.faults.processes import finish, losses, records, start
from tests.faults.small_plan import plan_bytes

LENGTH = {1: 400, 2: 60}


def undisturbed(folder: Path, ranks: int, **fields: object) -> dict[int, tuple[float, float]]:
    ended = finish(plan_bytes(ranks=ranks, steps=LENGTH[ranks], every=1000, **fields), folder)
    assert ended.exit_code == 0, ended.err
    return losses(folder / "runs" / "small")


@pytest.mark.parametrize(("ranks", "number"), [(1, signal.SIGTERM), (2, signal.SIGTERM), (2, signal.SIGINT)])
def test_a_signal_saves_and_stops_and_the_next_start_goes_on_bit_for_bit(
    tmp_path: Path, ranks: int, number: signal.Signals
) -> None:
    expected = undisturbed(tmp_path / "undisturbed", ranks)
    plan = plan_bytes(ranks=ranks, steps=LENGTH[ranks], every=1000)
    for at in (7, 23):
        run = start(plan, tmp_path / "stopped")
        run.until_step(at)
        os.kill(run.process.pid, number)
        ended = run.wait()
        assert ended.exit_code == 75, ended.err
        assert ended.err == ""
        stopped = json.loads((run.directory / "stopped.json").read_text())
        assert stopped["requeue"] is True
        assert stopped["signal"] == number.name
        assert stopped["step"] < LENGTH[ranks], "the signal came too late to stop anything"
        assert stopped["checkpoint"] == f"runs/small/checkpoints/step-{stopped['step']}"
        assert f"{number.name}: saving and stopping after this step" in ended.out
    ended = finish(plan, tmp_path / "stopped")
    assert ended.exit_code == 0, ended.err
    assert f"resume from step {stopped['step']}" in ended.out
    assert losses(tmp_path / "stopped" / "runs" / "small") == expected
    assert not (run.directory / "stopped.json").exists()
    assert not (run.directory / "LOCK").exists()


def test_a_signal_to_one_rank_stops_all_after_the_same_step(tmp_path: Path) -> None:
    expected = undisturbed(tmp_path / "undisturbed", 2)
    plan = plan_bytes(ranks=2, steps=LENGTH[2], every=1000)
    run = start(plan, tmp_path / "stopped")
    run.until_step(5)
    os.kill(run.process_ids()[1], signal.SIGUSR1)
    ended = run.wait()
    assert ended.exit_code == 75, ended.err
    assert finish(plan, tmp_path / "stopped").exit_code == 0
    assert losses(tmp_path / "stopped" / "runs" / "small") == expected


def test_a_signal_during_a_long_evaluation_stops_it_and_saves(tmp_path: Path) -> None:
    plan = plan_bytes(steps=20, every=1000, eval_every=10, eval_batches=100_000)
    run = start(plan, tmp_path)
    run.until_step(10)
    os.kill(run.process.pid, signal.SIGTERM)
    ended = run.wait(10)
    assert ended.exit_code == 75, ended.err
    assert json.loads((run.directory / "stopped.json").read_text())["step"] in (10, 11)
    assert records(run.directory, "eval") == []


@pytest.mark.parametrize("ranks", [1, 2])
def test_a_second_signal_ends_at_once_and_leaves_the_last_commit(tmp_path: Path, ranks: int) -> None:
    plan = plan_bytes(ranks=ranks, steps=20, every=3, eval_every=10, eval_batches=100_000)
    run = start(plan, tmp_path)
    run.until_step(10)
    # Held still, so that the evaluation cannot end between the two; different ones, as equal ones would arrive as one.
    for pid in run.process_ids():
        os.kill(pid, signal.SIGSTOP)
    os.kill(run.process.pid, signal.SIGTERM)
    time.sleep(0.5)
    os.kill(run.process.pid, signal.SIGINT)
    time.sleep(0.5)
    for pid in run.process_ids():
        os.kill(pid, signal.SIGCONT)
    ended = run.wait(30)
    assert ended.exit_code == 130, ended.err
    assert [p.name for p in (run.directory / "checkpoints").glob("step-9")] == ["step-9"]


def test_a_finished_run_says_so_and_does_nothing(tmp_path: Path) -> None:
    plan = plan_bytes(steps=3)
    assert finish(plan, tmp_path).exit_code == 0
    before = (tmp_path / "runs/small/metrics.jsonl").read_bytes()
    ended = finish(plan, tmp_path)
    assert ended.exit_code == 0
    assert "nothing to do: all 3 steps are made" in ended.out
    assert (tmp_path / "runs/small/metrics.jsonl").read_bytes() == before


def test_two_ranks_go_on_as_one_with_the_same_weights_and_counters(tmp_path: Path) -> None:
    assert finish(plan_bytes(ranks=2, steps=4), tmp_path).exit_code == 0
    ended = finish(plan_bytes(ranks=1, steps=8, micro=4), tmp_path)
    assert ended.exit_code == 0, ended.err
    assert "resume from step 4" in ended.out
    assert "mesh.dp_shard: 2 → 1" in ended.out
    assert finish(plan_bytes(ranks=2, steps=8), tmp_path / "unbroken").exit_code == 0
    here, there = losses(tmp_path / "runs/small"), losses(tmp_path / "unbroken/runs/small")
    assert here.keys() == there.keys()
    # A shorter schedule was planned for the first steps; the data and the starting weights are the same.
    assert here[1][0] == pytest.approx(there[1][0], rel=1e-6)
