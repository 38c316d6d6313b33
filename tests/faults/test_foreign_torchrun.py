"""What do ranks do that a torchrun of somebody else started, and what when one of them has trouble?"""

from __future__ import annotations

import json
import os
import signal
import time
from pathlib import Path

import pytest

from forgeplan.runtime.checkpoint.load import load_state
from forgeplan.spec.nonfinite.policies import Skip
from tests.faults.processes import finish, losses, records, start_torchrun
from tests.faults.small_plan import plan_bytes


def test_it_trains_what_our_own_launcher_trains_and_says_in_the_directory_that_it_stopped(tmp_path: Path) -> None:
    plan = plan_bytes(ranks=2, steps=60, every=1000)
    assert finish(plan, tmp_path / "ours").exit_code == 0
    run = start_torchrun(plan, tmp_path / "theirs", 2)
    run.until_step(5)
    os.kill(run.process_ids()[0], signal.SIGTERM)
    assert run.wait().exit_code == 1, "torchrun itself ends with 1 whatever its workers return"
    stopped = json.loads((run.directory / "stopped.json").read_text())
    assert (stopped["requeue"], stopped["exit_code"]) == (True, 75)
    assert start_torchrun(plan, tmp_path / "theirs", 2).wait().exit_code == 0
    assert losses(tmp_path / "theirs/runs/small") == losses(tmp_path / "ours/runs/small")


def test_another_number_of_processes_is_refused_before_they_meet(tmp_path: Path) -> None:
    ended = start_torchrun(plan_bytes(ranks=2), tmp_path, 3).wait()
    message = "error[FP1003]: the plan was compiled for 2 processes on one machine; here are 3, 3 on this machine"
    assert ended.err.count(message) == 1
    assert "torchrun --nproc-per-node 2 -m forgeplan run FILE" in ended.err
    assert not (tmp_path / "runs").exists()


def test_a_nan_in_one_gradient_of_one_rank_skips_the_step_on_all(tmp_path: Path) -> None:
    plan = plan_bytes(ranks=2, steps=8, every=4, nonfinite=Skip(budget=3))
    ended = start_torchrun(plan, tmp_path, 2, "nan-at-3,4").wait()
    assert ended.exit_code == 0, ended.err
    found = records(tmp_path / "runs/small")
    assert [r["step"] for r in found if r["skipped_steps"]] == [3, 4]
    assert [r["grad_norm_before_clip"] for r in found if r["skipped_steps"]] == [None, None]
    assert set(found[2]["nonfinite"]) == {"grad_norm_before_clip"}
    assert load_state(tmp_path / "runs/small/checkpoints/step-4").skipped == 2


def test_more_skipped_steps_than_the_budget_end_the_run(tmp_path: Path) -> None:
    plan = plan_bytes(ranks=2, steps=30, every=4, nonfinite=Skip(budget=3))
    ended = start_torchrun(plan, tmp_path, 2, "nan-at-5,6,7,8").wait()
    assert ended.exit_code == 1
    assert ended.err.count("error[FP1019]: step 8") == 1
    assert records(tmp_path / "runs/small")[-1]["step"] == 8


def test_a_crash_on_one_rank_is_told_once_with_the_place_of_its_traceback(tmp_path: Path) -> None:
    ended = start_torchrun(plan_bytes(ranks=2), tmp_path, 2, "crash-on-rank-1").wait()
    message = "internal error on rank 1: RuntimeError: a made-up crash"
    assert ended.err.count(message) == 1
    assert "help: the traceback is in runs/small/logs/rank-1.log" in ended.err
    assert "a made-up crash" in (tmp_path / "runs/small/logs/rank-1.log").read_text()
    assert not (tmp_path / "runs/small/LOCK").exists()


def test_ranks_that_see_different_files_stop_with_one_message(tmp_path: Path) -> None:
    plan = plan_bytes(ranks=2, steps=4)
    assert finish(plan, tmp_path).exit_code == 0
    ended = start_torchrun(plan_bytes(ranks=2, steps=8), tmp_path, 2, "rank-1-sees-no-checkpoints").wait(60)
    assert ended.exit_code == 1
    assert ended.err.count("error[FP1013]: every checkpoint in runs/small/checkpoints is damaged") == 1
    assert "rank 1 does not see step-4/complete.json" in ended.err


SLOW = pytest.mark.slow


@pytest.mark.parametrize(
    ("what", "message", "moment"),
    [
        ("refused", "error[FP0612]: a made-up refusal", "opening"),
        ("out-of-memory", "error: rank 1 ran out of memory", "reading"),
        pytest.param("refused", "error[FP0612]: a made-up refusal", "reading", marks=SLOW),
        pytest.param("unreadable", "web.bin", "opening", marks=SLOW),
        pytest.param("unreadable", "web.bin", "reading", marks=SLOW),
        pytest.param("out-of-memory", "error: rank 1 ran out of memory", "opening", marks=SLOW),
    ],
)
def test_what_fails_on_one_rank_alone_ends_all_at_once_and_is_said_once(
    tmp_path: Path, moment: str, what: str, message: str
) -> None:
    """torchrun waits 30 s for ranks that do not end by themselves."""
    run = start_torchrun(plan_bytes(ranks=2, steps=10), tmp_path, 2, f"{moment}-{what}")
    ended = run.wait()
    assert ended.exit_code == 1
    failed_at = (run.directory / "logs/rank-1.log").stat().st_mtime
    assert time.time() - failed_at < 25
    said = [line for line in ended.err.splitlines() if "error" in line and ("FP" in line or "rank" in line)]
    assert sum(message in line for line in said) == 1, ended.err
    assert "internal error" not in ended.err
