"""How does each chosen layout fare, and which ones is there no room for here?"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from pathlib import Path

import torch
from attrs import frozen

from forgeplan.diagnostics.refusal import UsageError
from forgeplan.runtime.selftest.bench import Bench
from forgeplan.runtime.selftest.compare import Deviation, worst
from forgeplan.runtime.selftest.pool import RankFailed
from forgeplan.runtime.selftest.row import Row

RANK_BYTES = 300_000_000
"""What a rank of a tiny plan takes beside what it shares with the other ranks, rounded up."""


@frozen
class Result:
    """`status` is same, differs, failed (a rank raised or died) or not_run."""

    row: Row
    status: str
    deviation: Deviation | None = None
    """The largest, measured by what is allowed."""
    reason: str = ""
    """In one line, why it failed or was not run."""
    details: str = ""
    seconds: float = 0.0

    @property
    def is_bad(self) -> bool:
        return self.status in ("differs", "failed")


@frozen
class Room:
    """How many ranks can be started here, and a sentence on why not more."""

    num_ranks: int
    limit: str


def room_for(device_type: str) -> Room:
    """Raises UsageError where there is no such device."""
    if device_type == "cpu":
        free = _free_bytes()
        if free is None:
            return Room(2**31, "")
        return Room(free // RANK_BYTES, f"each takes {RANK_BYTES / 1e9:.1f} GB, and {free / 1e9:.1f} GB are free")
    num_devices = torch.cuda.device_count()
    if num_devices == 0:
        raise UsageError(
            f"--device {device_type}: torch finds no such device here\n  help: `forgeplan doctor` looks at devices"
        )
    return Room(num_devices, f"each takes a device, and there {'is' if num_devices == 1 else 'are'} {num_devices}")


def run(rows: Iterable[Row], bench: Bench, room: Room) -> Iterator[Result]:
    """One row after the other; a row that fails does not keep the others from running."""
    for row in rows:
        if row.num_ranks > max(1, room.num_ranks):
            yield Result(row, "not_run", reason=f"{row.num_ranks} ranks: {room.limit}")
            continue
        begin = time.monotonic()
        try:
            deviation = worst(bench.deviations(row.plan(), row.packed))
        except RankFailed as error:
            yield Result(row, "failed", None, error.reason, error.details, time.monotonic() - begin)
            continue
        status = "same" if deviation.is_same else "differs"
        yield Result(row, status, deviation, seconds=time.monotonic() - begin)


def _free_bytes() -> int | None:
    """Memory that processes can still get, or None where the system does not tell."""
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
    except OSError:
        return None
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:")), None)
