"""Who holds a run directory?"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from forgeplan.diagnostics.refusal import Refusal
from forgeplan.runtime.run_directory import RunDirectory, hold

HOLD = """
import sys, time
from pathlib import Path
from forgeplan.runtime.run_directory import RunDirectory, hold
lock = hold(RunDirectory(Path(sys.argv[1])), "other")
print("held", flush=True)
time.sleep(60)
"""


def another_process(folder: Path) -> subprocess.Popen[str]:
    process = subprocess.Popen([sys.executable, "-c", HOLD, str(folder)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    return process


def test_a_living_process_is_named_and_its_death_frees_the_directory(tmp_path: Path) -> None:
    other = another_process(tmp_path)
    try:
        with pytest.raises(Refusal, match=rf"FP1010: .*in use by process {other.pid} on .* \(other, started"):
            hold(RunDirectory(tmp_path), "mine")
        with pytest.raises(Refusal, match=r"FP1010"):
            hold(RunDirectory(tmp_path), "mine", take_over=True)
    finally:
        other.kill()
        other.wait()
    assert (tmp_path / "LOCK").exists()
    lock = hold(RunDirectory(tmp_path), "mine")
    assert json.loads((tmp_path / "LOCK").read_text())["pid"] == os.getpid()
    lock.release()
    assert not (tmp_path / "LOCK").exists()
    hold(RunDirectory(tmp_path), "again").release()


def test_two_runs_cannot_write_checkpoints_into_one_folder(tmp_path: Path) -> None:
    """Each would delete the other's as its own oldest ones."""
    shared = tmp_path / "shared"
    other = another_process(shared)
    try:
        with pytest.raises(Refusal, match=rf"FP1010: {shared} is in use by process {other.pid}"):
            hold(RunDirectory(tmp_path / "mine", shared), "mine")
    finally:
        other.kill()
        other.wait()
    assert not (tmp_path / "mine/LOCK").exists()
    lock = hold(RunDirectory(tmp_path / "mine", shared), "mine")
    assert (tmp_path / "mine/LOCK").exists()
    assert (shared / "LOCK").exists()
    lock.release()
    assert not (tmp_path / "mine/LOCK").exists()
    assert not (shared / "LOCK").exists()


def test_a_process_id_that_was_given_to_another_program_is_no_obstacle(tmp_path: Path) -> None:
    """The lock is the operating system's; the number in the file is for people."""
    holder = {"host": socket.gethostname(), "pid": os.getppid(), "job": "dead", "started": "2026-01-01T00:00:00+00:00"}
    (tmp_path / "LOCK").write_text(json.dumps(holder))
    lock = hold(RunDirectory(tmp_path), "mine")
    assert json.loads((tmp_path / "LOCK").read_text())["pid"] == os.getpid()
    lock.release()
    assert not (tmp_path / "LOCK").exists()


@pytest.mark.parametrize("content", ["", "{", "[1, 2]", '{"host": 1}'])
def test_a_lock_file_with_anything_in_it_is_handled(tmp_path: Path, content: str) -> None:
    (tmp_path / "LOCK").write_text(content)
    if content == '{"host": 1}':
        with pytest.raises(Refusal, match=r"FP1010: .*in use by process None on 1"):
            hold(RunDirectory(tmp_path), "mine")
    else:
        hold(RunDirectory(tmp_path), "mine").release()
