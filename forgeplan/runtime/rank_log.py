"""Where does a rank's output go?

Rank 0 talks to the person at the terminal and to `logs/rank-0.log`; every other rank only to its log.
"""

from __future__ import annotations

import contextlib
import faulthandler
import os
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import TextIO

from attrs import define


@define
class _Both:
    """A text stream that also writes to a log; everything else is the terminal's business."""

    terminal: TextIO
    log: TextIO

    def write(self, text: str) -> int:
        # A terminal that was closed and a log disk that is full are no reason to stop training.
        with contextlib.suppress(OSError):
            # A progress display moves the cursor: what it draws is for the eye alone.
            if "\x1b" not in text and "\r" not in text:
                self.log.write(text)
        with contextlib.suppress(OSError):
            self.terminal.write(text)
        return len(text)

    def flush(self) -> None:
        with contextlib.suppress(OSError):
            self.terminal.flush()

    def __getattr__(self, name: str) -> object:
        return getattr(self.terminal, name)


def open_log(path: Path, rank: int) -> TextIO:
    """From here on, what this process prints is also (rank 0) or only (the others) appended to `path`.

    Crashes of native code leave their Python stack in the same file. Output of other ranks is redirected at the level
    of file descriptors, so that libraries cannot write past it.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    log = path.open("a", buffering=1, encoding="utf-8")
    log.write(f"--- {datetime.now(UTC).isoformat(timespec='seconds')} process {os.getpid()}\n")
    faulthandler.enable(log)
    if rank == 0:
        sys.stdout = _Both(sys.stdout, log)
        sys.stderr = _Both(sys.stderr, log)
        return log
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
        os.dup2(log.fileno(), stream.fileno())
    return log
