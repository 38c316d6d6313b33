"""Are the bytes on the disk the ones that were written?

CRC-32 finds every single flipped bit and every burst of up to 32; it is computed from the bytes on their way to the
file, never by reading the file back.
"""

from __future__ import annotations

import io
import zlib
from collections.abc import Iterable
from pathlib import Path

from forgeplan.runtime.checkpoint.layout import FileFact

_CHUNK_BYTES = 1 << 20


class SummedStream(io.BufferedIOBase):
    """A binary output stream that checksums what passes through it to `raw`; only appends.

    `failure` is why a write failed: what torch's writer makes of it does not say.
    """

    def __init__(self, raw: io.BufferedIOBase) -> None:
        self._raw = raw
        self.size_bytes = 0
        self.crc32 = 0
        self.failure: OSError | None = None

    def write(self, data: object) -> int:
        view = memoryview(data).cast("B")  # type: ignore[arg-type]
        try:
            self._raw.write(view)
        except OSError as failure:
            self.failure = failure
            raise
        self.crc32 = zlib.crc32(view, self.crc32)
        self.size_bytes += len(view)
        return len(view)

    def tell(self) -> int:
        return self.size_bytes

    def flush(self) -> None:
        self._raw.flush()

    def fileno(self) -> int:
        # Whoever asks is about to force the file to the disk, and what still is in a buffer would not be forced.
        self._raw.flush()
        return self._raw.fileno()

    def writable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return False


def summed(path: str, data: bytes) -> FileFact:
    return FileFact(path, len(data), zlib.crc32(data))


def first_damage(folder: Path, files: Iterable[FileFact]) -> str | None:
    """What is wrong with the first file that is not as it was written, in words; None if all are."""
    for fact in files:
        try:
            found = _read(folder / fact.path)
        except OSError as error:
            return f"{fact.path}: {error.strerror or error}"
        if found[0] != fact.size_bytes:
            return f"{fact.path} has {found[0]:,} bytes, {fact.size_bytes:,} were written"
        if found[1] != fact.crc32:
            return f"{fact.path} has the checksum {found[1]:08x}, {fact.crc32:08x} was written"
    return None


def _read(path: Path) -> tuple[int, int]:
    size, crc = 0, 0
    with path.open("rb") as stream:
        while chunk := stream.read(_CHUNK_BYTES):
            size, crc = size + len(chunk), zlib.crc32(chunk, crc)
    return size, crc
