"""How are files read and written, so that a person knows what went wrong and nothing is ever half written?"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from forgeplan.diagnostics.refusal import UsageError


def read_bytes(path: str) -> bytes:
    """Raises UsageError for what is no readable file."""
    try:
        return Path(path).read_bytes()
    except FileNotFoundError:
        raise UsageError(f"there is no file {path}") from None
    except IsADirectoryError:
        raise UsageError(f"{path} is a folder, not a file") from None
    except OSError as reason:
        raise UsageError(f"{path} cannot be read: {_why(reason)}") from None


def as_text(data: bytes, name: str) -> str:
    """Raises UsageError for what is not UTF-8."""
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as reason:
        raise UsageError(f"{name} is not UTF-8 text: byte {reason.start} cannot be read") from None


def write_bytes(path: str, data: bytes) -> None:
    """Replace a file as a whole, keeping its permissions. Raises UsageError where nothing can be written."""
    target = Path(path).resolve()
    try:
        if target.exists() and not target.is_file():
            if target.is_dir():
                raise UsageError(f"{path} is a folder: name a file to write")
            target.write_bytes(data)
            return
        _replace(target, data)
    except OSError as reason:
        raise UsageError(f"{path} cannot be written: {_why(reason)}") from None


def _replace(target: Path, data: bytes) -> None:
    mode = target.stat().st_mode & 0o7777 if target.exists() else 0o666 & ~_umask()
    handle, name = tempfile.mkstemp(prefix=f".{target.name}-", dir=target.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        os.chmod(name, mode)
        os.replace(name, target)
    except BaseException:
        os.unlink(name)
        raise


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def _why(reason: OSError) -> str:
    return (reason.strerror or type(reason).__name__).lower()
