"""What does one rank of a run do, from the bytes of the plan to its exit code?"""

from __future__ import annotations

import os
from collections.abc import Callable

from torch import distributed

from forgeplan.diagnostics.refusal import Refusal
from forgeplan.diagnostics.refusals import TROUBLE
from forgeplan.plan.verify import read
from forgeplan.runtime import signals as signal_handling
from forgeplan.runtime.checkpoint.save import SaveFailed
from forgeplan.runtime.distributed import Meeting, OtherRankFailed, join, place_in
from forgeplan.runtime.dry_run import directory_of
from forgeplan.runtime.failure import Failures
from forgeplan.runtime.options import RunOptions
from forgeplan.runtime.rank_log import open_log
from forgeplan.runtime.run_directory import hold
from forgeplan.runtime.session import Session
from forgeplan.runtime.signals import Signals


def run_worker(read_plan: Callable[[], bytes], options: RunOptions, received: Signals | None = None) -> int:
    """Train what the plan says, as one rank of the job in the environment (or alone), and return the exit code.

    `read_plan` is called on rank 0 only, before anything else happens, and gives the bytes of plan.json; whatever it
    raises ends every rank, and reaches the caller on rank 0 only (the others return the same exit code silently; a
    SystemExit keeps its code). Refusals of the run itself are printed here, once. Call it from the main thread, once in
    a process: it handles signals from then on, `received` being those already handled.
    """
    signals = received or signal_handling.install()
    failures = Failures()
    try:
        failures.meeting = meeting = Meeting.at(place_in(os.environ))
    except Refusal as refusal:
        return failures.refused(refusal)
    try:
        plan = meeting.bytes_from_first(read_plan)
    except OtherRankFailed as other:
        return other.exit_code
    except Refusal as refusal:
        if meeting.place.rank == 0:
            raise
        return failures.refused(refusal)
    try:
        return _run(plan, options, signals, meeting, failures)
    except Refusal as refusal:
        return failures.refused(refusal)
    except (SaveFailed, OSError) as failure:
        help = "earlier checkpoints are intact; once there is space and permission to read and write, run again"
        return failures.refused(Refusal(TROUBLE, str(failure), help))
    except Exception as error:  # the last resort of the process: logged whole, told in one line, exit code 3
        return failures.crashed(error)
    finally:
        signals.run_is_over()


def _run(plan_bytes: bytes, options: RunOptions, signals: Signals, meeting: Meeting, failures: Failures) -> int:
    plan = read(plan_bytes)
    ranks, device = join(plan, meeting)
    directory = directory_of(plan, options)
    lock = ranks.together(lambda: hold(directory, plan.name, take_over=options.take_over) if ranks.is_first else None)
    try:
        failures.log_path = directory.log(ranks.rank)
        failures.log = ranks.together(lambda: open_log(directory.log(ranks.rank), ranks.rank))
        session = Session(plan, plan_bytes, options, directory, ranks, device, signals)
        exit_code = session.run()
        signals.run_is_over()
        if ranks.world > 1:
            ranks.wait()
            distributed.destroy_process_group()
        session.show_sample(exit_code)
        return exit_code
    finally:
        if lock is not None:
            lock.release()
