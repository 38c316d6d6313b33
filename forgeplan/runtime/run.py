"""What does one rank of a run do, from the bytes of the plan to its exit code?"""

from __future__ import annotations

from collections.abc import Callable

from forgeplan.runtime.options import RunOptions


def run_worker(read_plan: Callable[[], bytes], options: RunOptions) -> int:
    """Train what the plan says, as one rank of the torchrun job in the environment (or alone), and return the exit code.

    `read_plan` is called on rank 0 only, before anything else happens, and gives the bytes of plan.json; whatever it
    raises ends every rank, and reaches the caller on rank 0 only (the others return the same exit code silently; a
    SystemExit keeps its code). Refusals of the run itself are printed here, once, on rank 0.
    """
    raise SystemExit(len(read_plan()) + options.take_over)
