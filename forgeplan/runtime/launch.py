"""How does one command become as many processes as the plan has ranks?

The launching process stays small (it never imports torch), starts torchrun on this machine, hands on the signals it
gets and waits for the ranks to save, for as long as they need.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

from attrs import define, field

from forgeplan.diagnostics.refusal import Refusal
from forgeplan.diagnostics.refusals import WORLD_SIZE, as_text
from forgeplan.plan.execution_plan import ExecutionPlan
from forgeplan.plan.verify import read
from forgeplan.runtime.dry_run import describe
from forgeplan.runtime.launch_folder import VARIABLE, LaunchFolder
from forgeplan.runtime.options import ExitCode, RunOptions
from forgeplan.runtime.signals import HANDLED, install

_SECONDS_TO_ABORT = 10.0
_SECONDS_BETWEEN_LOOKS = 0.05


def is_rank_of_a_launched_job(environment: Mapping[str, str] = os.environ) -> bool:
    """Whether a launcher started this process as one of several: then it is to join them, not to launch."""
    return "RANK" in environment or "WORLD_SIZE" in environment


def launch(plan: bytes, options: RunOptions) -> int:
    """Run a compiled plan (the bytes of its plan.json) on this machine and return the exit code.

    Starts torchrun for a world above one, runs in this process otherwise. A refusal is printed here as one message;
    nothing is raised for it.
    """
    try:
        execution_plan = read(plan)
        if options.dry_run:
            print(describe(execution_plan, options))
            return ExitCode.FINE
        _check_one_machine(execution_plan)
    except Refusal as refusal:
        print(as_text(refusal), file=sys.stderr)
        return ExitCode.FAILED
    if execution_plan.mesh.world == 1:
        # Before torch is imported, which takes seconds in which a signal may come.
        received = install()
        from forgeplan.runtime.run import run_worker

        return run_worker(lambda: plan, options, received)
    with tempfile.TemporaryDirectory(prefix="forgeplan-") as name:
        folder = LaunchFolder(Path(name))
        folder.fill(plan, options)
        return _Launch(folder, execution_plan.mesh.world).run()


def _check_one_machine(plan: ExecutionPlan) -> None:
    nodes = plan.job.cluster.nodes
    if nodes > 1:
        per_node = plan.job.cluster.devices_per_node
        raise Refusal(
            WORLD_SIZE,
            f"the plan was compiled for {nodes} machines, and `forgeplan run` alone starts processes on this one only",
            (
                f"on every machine: `torchrun --nnodes {nodes} --nproc-per-node {per_node} … -m forgeplan run FILE`",
                "or compile it for this machine: `forgeplan run FILE --nproc N`",
            ),
        )


@define
class _Launch:
    folder: LaunchFolder
    world: int
    pending: list[int] = field(factory=list)
    """Signals that arrived, in order."""
    delivered: dict[int, int] = field(factory=dict)
    """How many of them each rank has got."""

    def run(self) -> int:
        # The handlers stand before torchrun starts: a signal in between is kept and delivered.
        previous = {number: signal.signal(number, self._keep) for number in HANDLED}
        try:
            self._wait(
                subprocess.Popen(
                    self._command(), env=self._environment(), stdin=subprocess.PIPE, start_new_session=True
                )
            )
        finally:
            for number, handler in previous.items():
                signal.signal(number, handler)
        return self._exit_code()

    def _keep(self, number: int, frame: object) -> None:
        self.pending.append(number)

    def _wait(self, agent: subprocess.Popen[bytes]) -> None:
        aborted_at: float | None = None
        while True:
            try:
                agent.wait(_SECONDS_BETWEEN_LOOKS)
                if agent.returncode < 0:
                    self._kill(agent)  # A signal ended it, and so nobody has ended its ranks.
                return
            except subprocess.TimeoutExpired:
                self._deliver()
            if len(self.pending) > 1:
                now = time.monotonic()
                aborted_at = aborted_at or now
                if not self.folder.pids() or now - aborted_at > _SECONDS_TO_ABORT:
                    self._kill(agent)
                    return

    def _deliver(self) -> None:
        """Hand each rank its next signal, also one that started late. One a look: two at once are seen as one."""
        if not self.pending:
            return
        for rank, pid in self.folder.pids().items():
            count = self.delivered.get(rank, 0)
            if count < len(self.pending):
                _send(pid, self.pending[count])
                self.delivered[rank] = count + 1

    def _kill(self, agent: subprocess.Popen[bytes]) -> None:
        for pid in (*self.folder.pids().values(), agent.pid):
            _send(pid, signal.SIGKILL)
        agent.wait()

    def _exit_code(self) -> int:
        codes = self.folder.exit_codes()
        if len(self.pending) > 1 and ExitCode.STOPPED not in codes.values():
            return ExitCode.ABORTED
        vanished = sorted(set(range(self.world)) - set(codes))
        if vanished and not self.folder.is_ending():
            self._report_vanished(vanished)
        bad = [c for c in codes.values() if c not in (ExitCode.FINE, ExitCode.STOPPED)]
        if bad or vanished:
            return max(bad, default=ExitCode.FAILED)
        return codes[0]

    def _report_vanished(self, ranks: list[int]) -> None:
        """Say which ranks ended without a word."""
        names = ", ".join(map(str, ranks))
        print(
            f"error: rank {names} ended without a message: killed from outside, out of memory, or crashed\n"
            "  help: the rank's log in the run directory's logs/ has its last words; run again to go on from the last"
            " checkpoint",
            file=sys.stderr,
        )

    def _command(self) -> list[str]:
        agent = [sys.executable, "-m", "forgeplan.runtime.agent", str(self.folder.root)]
        # Standalone: torchrun picks a free port itself, so that no port can be in use.
        torchrun = ["--standalone", "--nproc-per-node", str(self.world), "--shutdown-timeout", "10"]
        return [*agent, *torchrun, "-m", "forgeplan.runtime.worker"]

    def _environment(self) -> dict[str, str]:
        defaults = {
            "OMP_NUM_THREADS": "1",
            "TORCH_CPP_LOG_LEVEL": "ERROR",
            "GLOO_SOCKET_IFNAME": "lo0" if sys.platform == "darwin" else "lo",
        }
        return {**defaults, **os.environ, VARIABLE: str(self.folder.root)}


def _send(pid: int, number: int) -> None:
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return
