"""What does torchrun start for each rank of a run that `forgeplan run` launches?

Ends with 0 also when it stopped on a signal, so that torchrun does not take an orderly end for a failure and kill the
ranks that are still leaving; the true exit code stands in the launch folder.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from pathlib import Path

from forgeplan.runtime import signals
from forgeplan.runtime.launch_folder import VARIABLE, LaunchFolder
from forgeplan.runtime.options import ExitCode

_SECONDS_BETWEEN_LOOKS = 0.5


def main() -> int:
    folder = LaunchFolder(Path(os.environ[VARIABLE]))
    rank = int(os.environ["RANK"])
    received = signals.install()
    threading.Thread(target=_follow_parent, args=(os.getppid(),), daemon=True).start()
    folder.enter(rank)

    from forgeplan.runtime.run import run_worker

    exit_code = run_worker(folder.plan.read_bytes, folder.options(), received)
    folder.leave(rank, exit_code)
    return ExitCode.FINE if exit_code == ExitCode.STOPPED else exit_code


def _follow_parent(parent: int) -> None:
    """End at once when torchrun is killed: it held the store in which the ranks would look for one another."""
    while os.getppid() == parent:
        time.sleep(_SECONDS_BETWEEN_LOOKS)
    os._exit(ExitCode.FAILED)


if __name__ == "__main__":
    sys.exit(main())
