"""Who starts the ranks of one machine, and keeps quiet about it?

This is torchrun (torch.distributed.run) with its own report silenced: the launching process shows what the ranks had
to say. It runs in a session of its own, so that a Ctrl-C reaches the ranks once, through the launching process.
"""

from __future__ import annotations

import contextlib
import logging
import os
import shutil
import signal
import sys
import threading
import time
from pathlib import Path

from forgeplan.runtime.launch_folder import LaunchFolder


def main(folder: Path, arguments: list[str]) -> int:
    """Run torchrun with these arguments; 0 if every rank ended with 0, 1 otherwise."""
    alone = threading.Event()
    threading.Thread(target=_follow_parent, args=(LaunchFolder(folder), alone), daemon=True).start()
    from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
    from torch.distributed.run import parse_args, run

    logging.getLogger("torch").setLevel(logging.CRITICAL)
    try:
        run(parse_args(arguments))
    except ChildFailedError:
        return 1
    finally:
        if alone.is_set():  # Else it is the launching process that reads it and removes it.
            shutil.rmtree(folder, ignore_errors=True)
    return 0


def _follow_parent(folder: LaunchFolder, alone: threading.Event) -> None:
    """Ask the ranks to save and stop when the launching process is gone: its end closes the pipe at standard input."""
    while os.read(0, 1 << 12):
        pass
    alone.set()
    asked: set[int] = set()
    while True:  # Ranks that are only starting are asked as soon as they have.
        for pid in set(folder.pids().values()) - asked:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGTERM)
            asked.add(pid)
        time.sleep(0.1)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), sys.argv[2:]))
