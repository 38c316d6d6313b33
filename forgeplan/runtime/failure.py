"""How does a rank say why the run ends, so that a person reads it once?"""

from __future__ import annotations

import contextlib
import os
import re
import sys
import traceback
from pathlib import Path
from typing import TextIO

import torch
from attrs import define, field

from forgeplan.diagnostics.refusal import Refusal
from forgeplan.diagnostics.refusals import as_text
from forgeplan.runtime.distributed import Meeting
from forgeplan.runtime.launch_folder import VARIABLE, LaunchFolder
from forgeplan.runtime.options import ExitCode

_LOST_PEER = re.compile(
    r"closed by peer|reset by peer|Broken pipe|gloo/transport|Connection was likely closed"
    r"|NCCL communicator was aborted|ncclRemoteError|remote process exited"
)
_NO_MEMORY = re.compile(r"can't allocate memory|not enough memory")
"""What torch says on a CPU, in a RuntimeError."""


@define
class Failures:
    """Speaks for this rank. `log` and `log_path` are there once the run directory is held."""

    meeting: Meeting | None = None
    log: TextIO | None = None
    log_path: Path | None = None
    _terminal: TextIO = field(factory=lambda: os.fdopen(os.dup(2), "w", buffering=1, errors="replace"))

    def refused(self, refusal: Refusal) -> int:
        """A refusal, told once however many ranks have it."""
        self._say(as_text(refusal), key=str(refusal))
        return ExitCode.FAILED

    def crashed(self, error: BaseException) -> int:
        """Anything that should not happen. The traceback goes to the log; a bug is called one."""
        self._trace(error)
        rank = self.meeting.place.rank if self.meeting is not None else 0
        if _LOST_PEER.search(str(error)):
            # Another rank went first. The launching process sees which; without one, nobody else may be left to tell.
            if VARIABLE not in os.environ:
                self._say(f"error: rank {rank} lost the connection to another rank, which ended or was killed", "crash")
            return ExitCode.FAILED
        where = f"\n  help: the traceback is in {self.log_path}" if self.log_path is not None else ""
        if _is_out_of_memory(error):
            what = "device memory" if isinstance(error, torch.OutOfMemoryError) else "memory"
            self._say(f"error: rank {rank} ran out of {what}: {_first_line(error)}{where}", "crash")
            return ExitCode.FAILED
        self._say(
            f"internal error on rank {rank}: {type(error).__name__}: {_first_line(error)}\n"
            f"  this is a bug in forgeplan or in what it stands on; please report it{where}",
            "crash",
        )
        return ExitCode.INTERNAL

    def _say(self, text: str, key: str) -> None:
        folder = os.environ.get(VARIABLE)
        if folder is not None:
            LaunchFolder(Path(folder)).announce_end()
        self._write_log(text + "\n")
        if self.meeting is None or self.meeting.is_first_to_say(key):
            with contextlib.suppress(OSError):
                self._terminal.write(text + "\n")

    def _trace(self, error: BaseException) -> None:
        text = "".join(traceback.format_exception(error))
        if self.log is not None:
            self._write_log(text)
        elif not _LOST_PEER.search(str(error)):
            sys.stderr.write(text)

    def _write_log(self, text: str) -> None:
        if self.log is not None:
            with contextlib.suppress(OSError):  # a full disk must not hide the reason
                self.log.write(text)


def _is_out_of_memory(error: BaseException) -> bool:
    return isinstance(error, torch.OutOfMemoryError | MemoryError) or _NO_MEMORY.search(str(error)) is not None


def _first_line(error: BaseException) -> str:
    return next(iter(str(error).strip().splitlines()), type(error).__name__)
