"""What does torchrun start for each rank of a run that `forgeplan run` launches?

Ends with 0 also when it stopped on a signal, so that torchrun does not take an orderly end for a failure and kill the
ranks that are still leaving; the true exit code stands in the launch folder.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from forgeplan.runtime import signals
from forgeplan.runtime.launch_folder import VARIABLE, LaunchFolder
from forgeplan.runtime.options import ExitCode


def main() -> int:
    folder = LaunchFolder(Path(os.environ[VARIABLE]))
    rank = int(os.environ["RANK"])
    received = signals.install()
    folder.enter(rank)

    from forgeplan.runtime.run import run_worker

    exit_code = run_worker(folder.plan.read_bytes, folder.options(), received)
    folder.leave(rank, exit_code)
    return ExitCode.FINE if exit_code == ExitCode.STOPPED else exit_code


if __name__ == "__main__":
    sys.exit(main())
