"""What does a killed run leave behind?"""

from __future__ import annotations

import os
import random
import shutil
import signal
import time
from pathlib import Path

import pytest

from forgeplan.runtime.checkpoint import layout
from forgeplan.runtime.checkpoint.choose import choose
from forgeplan.runtime.ranks import Ranks
from tests.faults.processes import Run, finish, losses, records, start
from tests.faults.small_plan import plan_bytes


def children(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def is_running(pid: int) -> bool:
    """A process that has ended and that nobody has waited for is not."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"


def kill_ranks(run: Run) -> None:
    for pid in run.process_ids():
        os.kill(pid, signal.SIGKILL)


def test_a_run_killed_while_it_saves_goes_on_from_the_last_commit_bit_for_bit(tmp_path: Path) -> None:
    """One save a step and one checkpoint kept: wherever the kill falls, a complete checkpoint is there."""
    steps = 150
    assert finish(plan_bytes(steps=steps, every=1000), tmp_path / "undisturbed").exit_code == 0
    plan, folder = plan_bytes(steps=steps, every=1, keep=1), tmp_path / "killed"
    moments = random.Random(1)
    for trial in range(3):
        run = start(plan, folder)
        run.until_step(10 + 40 * trial)
        time.sleep(moments.uniform(0, 0.05))
        kill_ranks(run)
        assert run.wait().exit_code == -signal.SIGKILL
        checkpoints = run.directory / "checkpoints"
        decision = choose(checkpoints, "auto", Ranks())
        assert decision.step is not None
        assert decision.notes == ()
        assert len(layout.list_steps(checkpoints)) in (1, 2)
    ended = finish(plan, folder)
    assert ended.exit_code == 0, ended.err
    assert losses(folder / "runs/small") == losses(tmp_path / "undisturbed/runs/small")
    assert layout.list_steps(checkpoints) == [steps]


@pytest.mark.slow
def test_a_rank_killed_in_the_middle_ends_the_run_and_is_named(tmp_path: Path) -> None:
    plan = plan_bytes(ranks=2, steps=60, every=5)
    run = start(plan, tmp_path)
    run.until_step(12)
    os.kill(run.process_ids()[1], signal.SIGKILL)
    ended = run.wait(60)
    assert ended.exit_code == 1
    assert "error: rank 1 ended without a message" in ended.err
    assert "Traceback" not in ended.err + ended.out
    ended = finish(plan, tmp_path)
    assert ended.exit_code == 0, ended.err
    assert "resume from step" in ended.out


def test_no_rank_outlives_a_torchrun_that_was_killed(tmp_path: Path) -> None:
    run = start(plan_bytes(ranks=2, steps=100_000, every=100_000), tmp_path)
    run.until_step(5)
    ranks = run.process_ids()
    (torchrun,) = children(run.process.pid)
    os.kill(torchrun, signal.SIGKILL)
    ended = run.wait(60)
    assert ended.exit_code == 1
    assert "error: rank 0, 1 ended without a message" in ended.err
    assert "Traceback" not in ended.err + ended.out
    assert [pid for pid in ranks if Path(f"/proc/{pid}/cmdline").exists() and is_running(pid)] == []


def test_the_end_of_the_launching_process_makes_the_ranks_save_and_stop(tmp_path: Path) -> None:
    run = start(plan_bytes(ranks=2, steps=100_000, every=100_000), tmp_path)
    run.until_step(5)
    run.process.send_signal(signal.SIGKILL)
    run.process.wait()
    deadline = time.monotonic() + 30
    while not (run.directory / "stopped.json").exists():
        assert time.monotonic() < deadline, "the ranks run on without their launching process"
        time.sleep(0.05)
    assert layout.newest(run.directory / "checkpoints") is not None


def test_the_end_of_the_launching_process_before_the_ranks_have_started_stops_them_too(tmp_path: Path) -> None:
    (tmp_path / "temporary").mkdir()
    environment = {"TMPDIR": str(tmp_path / "temporary")}
    run = start(plan_bytes(ranks=2, steps=100_000, every=100_000), tmp_path, environment=environment)
    run.until(lambda: children(run.process.pid), "torchrun")
    assert not list((tmp_path / "temporary").glob("forgeplan-*/pid-*")), "the ranks were faster"
    run.process.send_signal(signal.SIGKILL)
    run.process.communicate(timeout=60)
    assert not list((tmp_path / "temporary").glob("forgeplan-*"))
    assert not records(run.directory) or (run.directory / "stopped.json").exists()


@pytest.mark.parametrize("moment", [pytest.param("start", marks=pytest.mark.slow), "training"])
def test_the_ranks_end_with_a_torchrun_that_is_killed(tmp_path: Path, moment: str) -> None:
    (tmp_path / "temporary").mkdir()
    environment = {"TMPDIR": str(tmp_path / "temporary")}
    run = start(plan_bytes(ranks=2, steps=100_000, every=100_000), tmp_path, environment=environment)
    if moment == "start":
        run.until(lambda: len(list((tmp_path / "temporary").glob("forgeplan-*/pid-*"))) == 2, "ranks")
    else:
        run.until_step(5)
    for pid in children(run.process.pid):
        os.kill(pid, signal.SIGKILL)
    ended = run.wait(30)  # Until nobody holds its output any more.
    assert ended.exit_code == 1
    assert "error: rank 0, 1 ended without a message: killed from outside" in ended.err


@pytest.mark.parametrize("stage", ["no name yet", pytest.param("no marker", marks=pytest.mark.slow)])
def test_what_a_save_that_died_left_is_passed_over(tmp_path: Path, stage: str) -> None:
    plan = plan_bytes(steps=12, every=4)
    assert finish(plan, tmp_path).exit_code == 0
    checkpoints = tmp_path / "runs/small/checkpoints"
    expected = losses(tmp_path / "runs/small")
    if stage == "no name yet":
        os.rename(checkpoints / "step-12", checkpoints / "step-12.partial")
    else:
        (checkpoints / "step-12" / layout.MARKER).unlink()
        shutil.copytree(checkpoints / "step-8", checkpoints / "old-step-8-copy")
    ended = finish(plan, tmp_path)
    assert ended.exit_code == 0, ended.err
    assert "resume from step 8" in ended.out
    assert losses(tmp_path / "runs/small") == expected
    assert layout.list_steps(checkpoints) == [4, 8, 12]


def test_an_evaluation_that_a_kill_cut_short_is_made_when_the_run_goes_on(tmp_path: Path) -> None:
    fields = {"steps": 10, "every": 5, "eval_every": 5}
    assert finish(plan_bytes(**fields), tmp_path / "undisturbed").exit_code == 0
    run = start(plan_bytes(**fields, eval_batches=100_000), tmp_path / "killed")
    run.until_step(5)
    run.until(lambda: layout.list_steps(run.directory / "checkpoints") == [5], "checkpoint of step 5")
    kill_ranks(run)
    run.wait()
    ended = finish(plan_bytes(**fields), tmp_path / "killed")
    assert ended.exit_code == 0, ended.err
    found = [records(tmp_path / name / "runs/small", "eval") for name in ("killed", "undisturbed")]
    assert [(r["step"], r["loss"]) for r in found[0]] == [(r["step"], r["loss"]) for r in found[1]]
    assert [r["step"] for r in found[0]] == [5, 10]


def test_a_run_killed_in_its_last_evaluation_has_saved_its_last_step_and_evaluates_when_run_again(
    tmp_path: Path,
) -> None:
    run = start(plan_bytes(steps=10, every=1000, eval_every=1000, eval_batches=100_000), tmp_path)
    run.until_step(10)
    run.until(lambda: layout.list_steps(run.directory / "checkpoints") == [10], "checkpoint of step 10")
    kill_ranks(run)
    run.wait()
    again = plan_bytes(steps=10, every=1000, eval_every=1000, eval_batches=2)
    ended = finish(again, tmp_path)
    assert ended.exit_code == 0, ended.err
    assert "resume from step 10" in ended.out
    assert [r["step"] for r in records(run.directory, "eval")] == [10]
    assert "nothing to do" in finish(again, tmp_path).out
