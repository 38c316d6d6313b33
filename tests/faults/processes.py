"""How does a test start a run as a person does, disturb it, and read what it left?"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from attrs import define

from forgeplan.runtime.options import RunOptions

ROOT = Path(__file__).parents[2]
PATIENCE_SECONDS = 120.0
START = (
    "import sys; from pathlib import Path; from forgeplan.runtime.launch import launch;"
    " from forgeplan.runtime.options import RunOptions;"
    " sys.exit(launch(Path(sys.argv[1]).read_bytes(), RunOptions.from_json(sys.argv[2])))"
)


@define
class Ended:
    exit_code: int
    out: str
    err: str


@define
class Run:
    """A launching process in a folder of its own."""

    folder: Path
    process: subprocess.Popen[str]
    name: str
    earlier_sessions: int
    """Of the same run, before this process."""

    @property
    def directory(self) -> Path:
        return self.folder / "runs" / self.name

    def wait(self, seconds: float = PATIENCE_SECONDS) -> Ended:
        out, err = self.process.communicate(timeout=seconds)
        return Ended(self.process.returncode, out, err)

    def until(self, condition: Callable[[], Any], what: str) -> Any:
        """Wait until `condition` gives something true, and return that."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not (found := condition()):
            if self.process.poll() is not None:
                ended = self.wait()
                raise AssertionError(f"ended with {ended.exit_code} before {what}\n{ended.out}\n{ended.err}")
            if time.monotonic() > deadline:
                self.process.kill()
                raise AssertionError(f"no {what} in {PATIENCE_SECONDS} s")
            time.sleep(0.005)
        return found

    def process_ids(self) -> list[int]:
        """Of the ranks, in order, from their logs."""
        logs = sorted((self.directory / "logs").glob("rank-*.log"))
        return [int(re.findall(r"^--- .* process (\d+)$", log.read_text(), re.MULTILINE)[-1]) for log in logs]

    def sessions(self) -> list[Any]:
        """Of the run, from its manifest."""
        return sessions(self.directory)

    def until_training(self) -> None:
        """Until this process, not an earlier one, is about to train."""
        self.until(lambda: len(self.sessions()) > self.earlier_sessions, "session")

    def until_step(self, step: int) -> None:
        self.until_training()
        self.until(lambda: any(r["step"] >= step for r in records(self.directory)), f"step {step}")


def start(plan: bytes, folder: Path, *, environment: dict[str, str] | None = None, **options: Any) -> Run:
    """Start a compiled plan in `folder`, in a process group of its own."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "start.plan.json"
    path.write_bytes(plan)
    command = [sys.executable, "-c", START, str(path), RunOptions(**options).to_json()]
    return _run(plan, folder, command, environment or {})


def start_torchrun(plan: bytes, folder: Path, num_processes: int, *disturbances: str, **options: Any) -> Run:
    """Start the ranks under torchrun itself, as a cluster's job script does."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "start.plan.json"
    path.write_bytes(plan)
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(num_processes)]
    worker = [str(ROOT / "tests" / "faults" / "torchrun_worker.py"), str(path), RunOptions(**options).to_json()]
    return _run(plan, folder, [*torchrun, *worker, *disturbances], {})


def finish(plan: bytes, folder: Path, **options: Any) -> Ended:
    return start(plan, folder, **options).wait()


def _run(plan: bytes, folder: Path, command: list[str], environment: dict[str, str]) -> Run:
    name = json.loads(plan)["name"]
    earlier = len(sessions(folder / "runs" / name))
    process = subprocess.Popen(
        command,
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    return Run(folder, process, name, earlier)


def sessions(directory: Path) -> list[Any]:
    path = directory / "manifest.json"
    return list(json.loads(path.read_text())["sessions"]) if path.exists() else []


def records(directory: Path, kind: str = "step") -> list[dict[str, Any]]:
    """The records of one kind in metrics.jsonl, by a parser that takes nothing but JSON."""
    path = directory / "metrics.jsonl"
    if not path.exists():
        return []
    lines = [line for line in path.read_text().splitlines(keepends=True) if line.endswith("\n")]
    return [r for r in (json.loads(line, parse_constant=_refuse) for line in lines) if r["kind"] == kind]


def losses(directory: Path) -> dict[int, tuple[float, float]]:
    """(loss, gradient norm) by step; fails if a step stands there twice."""
    found: dict[int, tuple[float, float]] = {}
    for record in records(directory):
        assert record["step"] not in found, f"step {record['step']} was reported twice"
        found[record["step"]] = (record["loss"], record["grad_norm_before_clip"])
    return found


def _refuse(name: str) -> None:
    raise ValueError(f"{name} is no JSON")
