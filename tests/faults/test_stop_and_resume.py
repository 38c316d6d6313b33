"""Does a run that is stopped and started again end where an undisturbed one does, bit for bit?"""

from __future__ import annotations

import json
import os
import shutil
import signal
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from tests.faults.processes import finish, losses, records, start
from tests.faults.small_plan import plan_bytes

LENGTH = {1: 400, 2: 60}


Losses = dict[int, tuple[float, float]]


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Callable[[int], Losses]:
    """Losses and norms of a run that nobody stopped, by its number of ranks; each is made once."""

    @cache
    def made(ranks: int) -> Losses:
        folder = tmp_path_factory.mktemp("undisturbed")
        ended = finish(plan_bytes(ranks=ranks, steps=LENGTH[ranks], every=1000), folder)
        assert ended.exit_code == 0, ended.err
        return losses(folder / "runs" / "small")

    return made


@pytest.mark.parametrize(
    ("ranks", "number", "stops"),
    [
        (1, signal.SIGTERM, (7, 23, 60)),
        (2, signal.SIGTERM, (11,)),
        pytest.param(2, signal.SIGINT, (5, 23), marks=pytest.mark.slow),
    ],
)
def test_a_signal_saves_and_stops_and_the_next_start_goes_on_bit_for_bit(
    tmp_path: Path,
    undisturbed: Callable[[int], Losses],
    ranks: int,
    number: signal.Signals,
    stops: tuple[int, ...],
) -> None:
    plan = plan_bytes(ranks=ranks, steps=LENGTH[ranks], every=1000)
    for at in stops:
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
    assert losses(tmp_path / "stopped" / "runs" / "small") == undisturbed(ranks)
    assert not (run.directory / "stopped.json").exists()
    assert not (run.directory / "LOCK").exists()


def test_a_signal_to_one_rank_stops_all_after_the_same_step(
    tmp_path: Path, undisturbed: Callable[[int], Losses]
) -> None:
    plan = plan_bytes(ranks=2, steps=LENGTH[2], every=1000)
    run = start(plan, tmp_path / "stopped")
    run.until_step(5)
    os.kill(run.process_ids()[1], signal.SIGUSR1)
    ended = run.wait()
    assert ended.exit_code == 75, ended.err
    assert finish(plan, tmp_path / "stopped").exit_code == 0
    assert losses(tmp_path / "stopped" / "runs" / "small") == undisturbed(2)


def test_a_signal_during_a_long_evaluation_stops_it_and_saves(tmp_path: Path) -> None:
    plan = plan_bytes(steps=20, every=1000, eval_every=10, eval_batches=100_000)
    run = start(plan, tmp_path)
    run.until_step(10)
    os.kill(run.process.pid, signal.SIGTERM)
    ended = run.wait(10)
    assert ended.exit_code == 75, ended.err
    assert json.loads((run.directory / "stopped.json").read_text())["step"] in (10, 11)
    assert records(run.directory, "eval") == []


@pytest.mark.parametrize("ranks", [pytest.param(1, marks=pytest.mark.slow), 2])
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


@pytest.mark.parametrize(("before", "after"), [(2, 1), pytest.param(1, 2, marks=pytest.mark.slow)])
def test_another_number_of_ranks_goes_on_with_the_same_weights_moments_and_data(
    tmp_path: Path, before: int, after: int
) -> None:
    plans = {ranks: plan_bytes(ranks=ranks, micro=4 // ranks, steps=8, every=4) for ranks in (1, 2)}
    assert finish(plans[before], tmp_path).exit_code == 0
    expected = losses(tmp_path / "runs/small")
    shutil.rmtree(tmp_path / "runs/small/checkpoints/step-8")
    ended = finish(plans[after], tmp_path)
    assert ended.exit_code == 0, ended.err
    assert "resume from step 4" in ended.out
    assert f"mesh.dp_shard: {before} → {after}" in ended.out
    found = losses(tmp_path / "runs/small")
    assert found.keys() == expected.keys()
    for step in range(5, 9):
        assert found[step] == pytest.approx(expected[step], rel=1e-5), f"step {step}"


def test_a_plan_that_trains_something_else_does_not_go_on_and_touches_nothing(tmp_path: Path) -> None:
    plan = plan_bytes(steps=8, every=4)
    assert finish(plan, tmp_path).exit_code == 0
    directory = tmp_path / "runs/small"
    before = {p: p.read_bytes() for p in directory.rglob("*") if p.is_file() and "logs" not in p.parts}
    for ranks in (1, 2):
        ended = finish(plan_bytes(ranks=ranks, micro=2 // ranks, steps=20, every=4, seed=8), tmp_path)
        assert ended.exit_code == 1
        assert ended.err.startswith("error[FP1016]: runs/small/checkpoints/step-8 was trained by a plan with other")
        assert "\n  seed: 7 → 8\n  help: to go on with this run, change them back" in ended.err
        assert ended.err.count("FP1016") == 1
    assert {p: p.read_bytes() for p in directory.rglob("*") if p.is_file() and "logs" not in p.parts} == before
