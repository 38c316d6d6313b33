"""How do the launching process and its ranks talk?

Through a private folder of small files; none is ever half written.
"""

from __future__ import annotations

import os
from pathlib import Path

from attrs import frozen

from forgeplan.runtime.files import replace
from forgeplan.runtime.options import RunOptions

VARIABLE = "FORGEPLAN_LAUNCH_FOLDER"


@frozen
class LaunchFolder:
    """Plan and options go in; each rank leaves its process id at its start and its exit code at its end."""

    root: Path

    @property
    def plan(self) -> Path:
        return self.root / "plan.json"

    def options(self) -> RunOptions:
        return RunOptions.from_json((self.root / "options.json").read_text())

    def fill(self, plan: bytes, options: RunOptions) -> None:
        self.plan.write_bytes(plan)
        (self.root / "options.json").write_text(options.to_json())

    def enter(self, rank: int) -> None:
        replace(self.root / f"pid-{rank}", str(os.getpid()).encode())

    def leave(self, rank: int, exit_code: int) -> None:
        replace(self.root / f"exit-{rank}", str(exit_code).encode())

    def pids(self) -> dict[int, int]:
        """Process ids by rank, of the ranks that have started and not ended."""
        ended = self.exit_codes()
        return {rank: pid for rank, pid in self._numbers("pid-").items() if rank not in ended}

    def exit_codes(self) -> dict[int, int]:
        return self._numbers("exit-")

    def announce_end(self) -> None:
        """A rank has said why the run fails: what happens to the others from now on is a consequence."""
        replace(self.root / "ending", b"")

    def is_ending(self) -> bool:
        return (self.root / "ending").exists()

    def _numbers(self, prefix: str) -> dict[int, int]:
        found = {}
        for path in self.root.glob(f"{prefix}*"):
            rank = path.name.removeprefix(prefix)
            if rank.isdecimal():
                found[int(rank)] = int(path.read_text())
        return found
