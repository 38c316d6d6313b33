"""Where does a run leave its files, and who may write there now?

runs/<run.name>/
  plan.json  manifest.json  metrics.jsonl  events/  logs/rank-*.log  checkpoints/
  certificate.json  what `forgeplan prove` found out about the plan
  LOCK            who is writing here; gone when nobody is
  stopped.json    after a stop: what was saved, and whether to run again
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
import socket
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from attrs import define, evolve, field, frozen

from forgeplan.diagnostics.refusal import Refusal
from forgeplan.diagnostics.refusals import DIRECTORY_HELD
from forgeplan.runtime.files import json_bytes

LOCK = "LOCK"


@frozen
class RunDirectory:
    """The names in one run directory. `checkpoint_root` is `checkpoint.path` where the plan gives one."""

    root: Path
    checkpoint_root: Path | None = None

    @property
    def plan(self) -> Path:
        return self.root / "plan.json"

    @property
    def manifest(self) -> Path:
        return self.root / "manifest.json"

    @property
    def certificate(self) -> Path:
        return self.root / "certificate.json"

    @property
    def metrics(self) -> Path:
        return self.root / "metrics.jsonl"

    @property
    def events(self) -> Path:
        return self.root / "events"

    def log(self, rank: int) -> Path:
        return self.root / "logs" / f"rank-{rank}.log"

    @property
    def checkpoints(self) -> Path:
        return (self.checkpoint_root or self.root) / "checkpoints"

    @property
    def lock(self) -> Path:
        return self.root / LOCK

    @property
    def stopped(self) -> Path:
        return self.root / "stopped.json"


@define
class Lock:
    """A held run directory. The operating system drops the lock with the process, whatever ends it."""

    path: Path
    _handle: int = field(repr=False)
    _further: Lock | None = None
    """Of the folder of checkpoints, where that is another."""

    def release(self) -> None:
        if self._further is not None:
            self._further.release()
        with contextlib.suppress(FileNotFoundError):
            self.path.unlink()
        os.close(self._handle)


def project_above(path: Path, run_dir: str) -> Path | None:
    """The folder below which `path` lies in the run directory `run_dir`; None if it lies elsewhere."""
    above = path.resolve().parents
    if Path(run_dir).is_absolute():
        return None
    return next((folder for folder in above if folder / run_dir in above), None)


def hold(directory: RunDirectory, job: str, *, take_over: bool = False) -> Lock:
    """Take the run directory and the folder of its checkpoints for this process, or raise Refusal FP1010 naming the
    holder.

    The lock of a dead process of this machine is taken over silently. Whether a process of another machine lives
    cannot be seen from here: its lock is respected until `take_over` says otherwise. Raises OSError if a folder cannot
    be written.
    """
    lock, elsewhere = _hold(directory.root, job, take_over), directory.checkpoints.parent
    if elsewhere.resolve() == directory.root.resolve():
        return lock
    try:
        return evolve(lock, further=_hold(elsewhere, job, take_over))
    except BaseException:
        lock.release()
        raise


def _hold(folder: Path, job: str, take_over: bool) -> Lock:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / LOCK
    while True:
        handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            _check_holder(folder, handle, take_over)
            if _is_still(path, handle):
                _write_holder(handle, job)
                return Lock(path, handle)
        except BaseException:
            os.close(handle)
            raise
        os.close(handle)


def _check_holder(folder: Path, handle: int, take_over: bool) -> None:
    locked = _try_lock(handle)
    holder = _read_holder(handle)
    if holder is None:
        if locked:
            return
        raise _held(folder, "a process that has just started", ())
    here = holder.get("host") == socket.gethostname()
    if locked and (here or take_over):
        return
    if here:
        advice: tuple[str, ...] = ("wait for it, or stop it: a first signal makes it save and end",)
    elif take_over and not locked:
        advice = ("it holds the lock at this moment: it is alive",)
    else:
        advice = ("if that machine no longer runs it: --take-over",)
    raise _held(folder, _described(holder), advice)


def _try_lock(handle: int) -> bool:
    """Whether the lock of the operating system was free.

    A file system without locks leaves the decision to the content.
    """
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:
        if error.errno not in (errno.ENOLCK, errno.ENOTSUP, errno.EINVAL, errno.ENOSYS):
            raise
        holder = _read_holder(handle) or {}
        return holder.get("host") != socket.gethostname() or not _is_alive(int(holder.get("pid", 0)))
    return True


def _is_alive(pid: int) -> bool:
    if pid <= 0 or pid == os.getpid():
        return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _is_still(path: Path, handle: int) -> bool:
    """Whether the locked file is the one that has the name: its former holder may have removed it in between."""
    try:
        return os.path.samestat(os.fstat(handle), os.stat(path))
    except FileNotFoundError:
        return False


def _read_holder(handle: int) -> dict[str, Any] | None:
    try:
        found = json.loads(os.pread(handle, 1 << 16, 0))
    except ValueError:
        return None
    return found if isinstance(found, dict) else None


def _write_holder(handle: int, job: str) -> None:
    content = json_bytes(
        {
            "host": socket.gethostname(),
            "pid": os.getpid(),
            "job": job,
            "started": datetime.now(UTC).isoformat(timespec="seconds"),
        }
    )
    os.ftruncate(handle, 0)
    os.pwrite(handle, content, 0)
    os.fsync(handle)


def _described(holder: dict[str, Any]) -> str:
    age = ""
    with contextlib.suppress(TypeError, ValueError):
        seconds = time.time() - datetime.fromisoformat(str(holder.get("started"))).timestamp()
        age = f", started {_age(seconds)} ago"
    return f"process {holder.get('pid')} on {holder.get('host')} ({holder.get('job')}{age})"


def _age(seconds: float) -> str:
    for size, unit in ((86400, "days"), (3600, "hours"), (60, "minutes")):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{max(seconds, 0):.0f} seconds"


def _held(folder: Path, holder: str, advice: tuple[str, ...]) -> Refusal:
    return Refusal(DIRECTORY_HELD, f"{folder} is in use by {holder}", advice)
