"""Who may write into a run directory?"""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

from tests.faults.processes import finish, start
from tests.faults.small_plan import plan_bytes


def test_a_second_job_is_refused_and_a_dead_one_is_no_obstacle(tmp_path: Path) -> None:
    plan = plan_bytes(steps=100_000, every=100)
    first = start(plan, tmp_path)
    first.until_step(150)
    ended = finish(plan, tmp_path)
    assert ended.exit_code == 1
    pid = json.loads((first.directory / "LOCK").read_text())["pid"]
    assert f"error[FP1010]: runs/small is in use by process {pid} on " in ended.err
    assert "Traceback" not in ended.err
    os.kill(pid, signal.SIGKILL)
    first.wait()
    assert (first.directory / "LOCK").exists()
    second = start(plan, tmp_path)
    second.until_training()
    second.process.send_signal(signal.SIGTERM)
    ended = second.wait()
    assert ended.exit_code == 75, ended.err
    assert "resume from step" in ended.out


def test_a_signal_before_the_first_step_stops_before_it(tmp_path: Path) -> None:
    run = start(plan_bytes(steps=100_000), tmp_path)
    run.until(lambda: (run.directory / "LOCK").exists(), "lock")
    run.process.send_signal(signal.SIGTERM)
    ended = run.wait()
    assert ended.exit_code == 75, ended.err
    assert json.loads((run.directory / "stopped.json").read_text())["step"] < 1000


def test_the_lock_of_another_machine_needs_consent(tmp_path: Path) -> None:
    directory = tmp_path / "runs/small"
    directory.mkdir(parents=True)
    holder = {"host": "elsewhere", "pid": 1, "job": "small", "started": "2026-01-01T00:00:00+00:00"}
    (directory / "LOCK").write_text(json.dumps(holder))
    ended = finish(plan_bytes(steps=2), tmp_path)
    assert ended.exit_code == 1
    assert "in use by process 1 on elsewhere (small, started" in ended.err
    assert "--take-over" in ended.err
    ended = finish(plan_bytes(steps=2), tmp_path, take_over=True)
    assert ended.exit_code == 0, ended.err
    assert not (directory / "LOCK").exists()
