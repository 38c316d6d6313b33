"""How is a row run on this machine, and is there room for its ranks?"""

from __future__ import annotations

import time
from pathlib import Path

import torch
from attrs import frozen

from forgeplan.diagnostics.refusal import UsageError
from forgeplan.runtime.selftest.bench import Bench
from forgeplan.runtime.selftest.compare import worst
from forgeplan.runtime.selftest.pool import RankFailed
from forgeplan.runtime.selftest.result import Result
from forgeplan.runtime.selftest.row import Row

RANK_BYTES = 300_000_000
"""What a rank of a tiny plan takes beside what it shares with the other ranks, rounded up."""


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


def run_row(row: Row, bench: Bench, room: Room) -> Result:
    """A row that fails does so in its result, and keeps no other from running."""
    if row.num_ranks > max(1, room.num_ranks):
        return Result(row, "not_run", reason=f"{row.num_ranks} ranks: {room.limit}")
    begin = time.monotonic()
    try:
        deviation = worst(bench.deviations(row.plan(), row.packed))
    except RankFailed as error:
        return Result(row, "failed", None, error.reason, error.details, time.monotonic() - begin)
    return Result(row, "same" if deviation.is_same else "differs", deviation, seconds=time.monotonic() - begin)


def _free_bytes() -> int | None:
    """Memory that processes can still get, or None where the system does not tell."""
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
    except OSError:
        return None
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:")), None)
