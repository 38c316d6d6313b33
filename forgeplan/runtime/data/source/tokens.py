"""How are files of token ids read? Mapped into memory, window after window; no window crosses files."""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import blake2b
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from forgeplan.diagnostics.counted import plural
from forgeplan.diagnostics.data_codes import TOKEN_DTYPE, TOO_FEW_SAMPLES
from forgeplan.diagnostics.refusal import Refusal
from forgeplan.runtime.data.files import files_of, unreadable
from forgeplan.runtime.data.hashing import I64
from forgeplan.runtime.data.samples import Samples, Setting, Source
from forgeplan.runtime.data.split import Part
from forgeplan.runtime.data.windows import WindowSamples
from forgeplan.runtime.registry import register
from forgeplan.spec.source.files import Tokens

PROBE_BYTES = 1 << 16
"""A file is recognised by its size and the hash of this much of its beginning and end."""


class TokenSource(Source):
    """Token files in the order of their names."""

    def __init__(self, spec: Tokens, setting: Setting) -> None:
        self.shuffle = spec.shuffle
        self.files = files_of(spec.path, setting)
        self.end_of_document = setting.tokenizer.end_of_document if setting.tokenizer else None
        self._setting = setting
        self._whole = TokenSamples(self.files, [_mapped(path, spec.dtype, setting) for path in self.files], setting)

    def part(self, part: Part) -> Samples:
        return self._whole if part.is_whole else WindowSamples(self._whole, part, share_edges=True)

    def facts(self) -> Mapping[str, str]:
        return {self._setting.shown(path): _probe(path) for path in self.files}

    def describe(self) -> str:
        files = self._setting.shown(self.files[0]) if len(self.files) == 1 else f"{len(self.files):,} files"
        return f"{plural(self._whole.num_tokens, 'token')} in {files}"


class TokenSamples(Samples):
    """Windows of length + 1 tokens, one every `length` tokens of a file."""

    def __init__(self, files: tuple[Path, ...], arrays: list[NDArray], setting: Setting) -> None:
        self._files = files
        self._arrays = arrays
        self._setting = setting
        self._length = setting.length
        counts = [(len(array) - 1) // setting.length for array in arrays]
        self._before = np.concatenate(([0], np.cumsum(np.array(counts, np.int64))))
        self.num_tokens = sum(map(len, arrays))
        self.num_samples = int(self._before[-1])

    def read(self, numbers: I64, out: I64) -> None:
        arrays, length = self._arrays, self._length
        files = np.searchsorted(self._before, numbers, "right") - 1
        firsts = (numbers - self._before[files]) * length
        for row, file, first in zip(out, files.tolist(), firsts.tolist(), strict=True):
            row[:] = arrays[file][first : first + length + 1]

    def place(self, number: int, offset: int) -> str:
        file = int(np.searchsorted(self._before, number, "right")) - 1
        token = (number - int(self._before[file])) * self._length + offset
        return f"source `{self._setting.name}`, {self._setting.shown(self._files[file])}, token {token:,}"


def _mapped(path: Path, dtype: str | None, setting: Setting) -> NDArray:
    """The ids of one file, without reading them. Raises Refusal FP0606, FP0612 or FP0613."""
    try:
        with path.open("rb") as file:
            has_header = file.read(6) == b"\x93NUMPY"
        array = _with_header(path, dtype, setting) if has_header else _raw(path, dtype, setting)
    except OSError as error:
        raise unreadable(path, setting, error) from error
    if len(array) <= setting.length:
        raise Refusal(
            TOO_FEW_SAMPLES,
            f"{_of(path, setting)} holds {plural(len(array), 'token')}; a sequence of length {setting.length:,} needs "
            f"{setting.length + 1:,}, as its last label is one token further",
            "shorten batch.length, or leave the file out of the pattern",
        )
    return array


def _with_header(path: Path, dtype: str | None, setting: Setting) -> NDArray:
    try:
        array = np.load(path, mmap_mode="r", allow_pickle=False)
    except (ValueError, EOFError) as error:
        raise Refusal(TOKEN_DTYPE, f"{_of(path, setting)} is a damaged .npy file: {error}") from error
    if array.ndim != 1 or array.dtype.kind not in "iu":
        shape = " × ".join(map(str, array.shape))
        raise Refusal(
            TOKEN_DTYPE,
            f"{_of(path, setting)} holds {array.dtype.name} of shape {shape or '()'}; "
            "token ids are one row of integers",
        )
    if dtype is not None and array.dtype.newbyteorder("=") != np.dtype(dtype):
        raise Refusal(
            TOKEN_DTYPE,
            f"{_of(path, setting)} holds {array.dtype.name}, and the plan says dtype = {dtype}",
            f"dtype = {array.dtype.name}, or no dtype at all: a .npy file says its own",
        )
    return np.asarray(array)


def _raw(path: Path, dtype: str | None, setting: Setting) -> NDArray:
    if dtype is None:
        raise Refusal(
            TOKEN_DTYPE,
            f"{_of(path, setting)} has no .npy header, and the plan does not say which integers it holds",
            "write dtype = uint16 (vocabularies up to 65,536) or dtype = uint32; it is never guessed",
        )
    size, item = path.stat().st_size, np.dtype(dtype).itemsize
    if size % item:
        raise Refusal(
            TOKEN_DTYPE,
            f"{_of(path, setting)} has {size:,} bytes, which is no whole number of {dtype} ids of {item} bytes",
            "the file was cut off, or holds another type",
        )
    # Raw files are written by little-endian machines.
    layout = np.dtype(dtype).newbyteorder("<")
    return np.asarray(np.memmap(path, layout, "r")) if size else np.empty(0, layout)


def _probe(path: Path) -> str:
    size = path.stat().st_size
    with path.open("rb") as file:
        content = file.read(PROBE_BYTES)
        file.seek(max(0, size - PROBE_BYTES))
        content += file.read(PROBE_BYTES)
    return f"{size:,} bytes, {blake2b(content, digest_size=8).hexdigest()}"


def _of(path: Path, setting: Setting) -> str:
    return f"source `{setting.name}`: {setting.shown(path)}"


@register.source("tokens", spec=Tokens)
def open_tokens(spec: Tokens, setting: Setting) -> TokenSource:
    return TokenSource(spec, setting)
