"""What is reported of a run, and how does a number that is not one stand in JSON?"""

from __future__ import annotations

from math import isfinite
from typing import Any, Protocol

Record = dict[str, Any]
"""`kind` ("step", "eval"), `step`, and named values. Times in seconds, memory in bytes."""


class Sink(Protocol):
    """A further receiver of records."""

    def write(self, record: Record) -> None: ...

    def close(self) -> None: ...


def strict(record: Record) -> Record:
    """The record with null for every NaN or infinity, and the names of those under `nonfinite`."""
    bad = {name: value for name, value in record.items() if isinstance(value, float) and not isfinite(value)}
    if not bad:
        return record
    return {**record, **dict.fromkeys(bad), "nonfinite": {name: str(value) for name, value in bad.items()}}
