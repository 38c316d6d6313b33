"""How does a file change so that a crash leaves either the old one or the new one?"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any


def write_durably(path: Path, data: bytes) -> None:
    """Write a new file and wait until it is on the disk. The name may be seen half written: see `replace`."""
    with path.open("wb") as stream:
        stream.write(data)
        stream.flush()
        os.fsync(stream.fileno())


def replace(path: Path, data: bytes) -> None:
    """Replace a file as a whole: readers see the old bytes or the new ones, also after a crash."""
    temporary = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    try:
        write_durably(temporary, data)
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)
    sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Wait until names created, renamed or removed in a folder are on the disk."""
    if os.name != "posix":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def json_bytes(value: Any) -> bytes:
    """Strict JSON for a person: indented, sorted, ends with a newline. Raises ValueError for NaN and infinities."""
    return (json.dumps(value, indent=2, sort_keys=True, allow_nan=False, ensure_ascii=False) + "\n").encode()


def read_json_object(path: Path) -> dict[str, Any] | None:
    """The JSON object in a file, or None if the file is missing, unreadable or holds something else."""
    try:
        value = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return None
    return value if isinstance(value, dict) else None
