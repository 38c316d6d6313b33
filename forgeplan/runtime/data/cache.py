"""Where do the ids of a text source lie, so that it is tokenised once?

A cache entry is a folder named by a hash of the texts and the tokenizer; it appears whole or not at all:

    tokens.bin       ids of all documents in a row, each closed by the end of a document where there is such an id
    documents.npy    uint64 (documents, 2): where each ends in tokens.bin, and the hash of its text
    entry.json       dtype and counts, against which the sizes of the other two are checked
"""

from __future__ import annotations

import json
import os
import shutil
import time
from array import array
from collections.abc import Callable, Iterator
from hashlib import blake2b
from pathlib import Path
from uuid import uuid4

import numpy as np
from attrs import frozen
from numpy.typing import NDArray

from forgeplan.diagnostics.data_codes import FILES
from forgeplan.diagnostics.refusal import Refusal
from forgeplan.runtime.data.hashing import I64, U64
from forgeplan.runtime.data.tokenizer.interface import Tokenizer

LAYOUT = 1
ABANDONED_SECONDS = 24 * 3600
"""An unfinished entry this old belongs to a process that was killed."""


@frozen
class Tokenised:
    """Ids of all documents in a row; document i ends before `ends[i]`."""

    tokens: NDArray
    ends: I64
    hashes: U64


def cache_folders(project: Path) -> tuple[Path, ...]:
    """Where entries may lie: the user's cache, or the project where that cannot be written."""
    own = project / ".forgeplan" / "cache" / "tokens"
    try:
        user = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    except RuntimeError:  # a user without a home
        return (own,)
    return user / "forgeplan" / "tokens", own


def tokenised(
    texts: Callable[[], Iterator[str]], digest: str, tokenizer: Tokenizer, folders: tuple[Path, ...]
) -> Tokenised:
    """The ids of `texts`, from the cache or made now. `digest` is the hash of the content of all texts."""
    key = blake2b(f"{LAYOUT} {digest} {tokenizer.fingerprint()}".encode(), digest_size=16).hexdigest()
    for folder in folders:
        found = _load(folder / key)
        if found is not None:
            return found
    problem: OSError | None = None
    for folder in folders:
        try:
            return _make(folder / key, texts(), tokenizer)
        except OSError as error:
            problem = error
    raise Refusal(
        FILES,
        f"tokenised text cannot be kept in {' or '.join(map(str, folders))}: {problem}",
        "set XDG_CACHE_HOME to a folder with space that can be written",
    )


def _load(entry: Path) -> Tokenised | None:
    """A complete entry, or None."""
    try:
        facts = json.loads((entry / "entry.json").read_text("utf-8"))
        documents = np.load(entry / "documents.npy", allow_pickle=False)
        dtype = np.dtype(facts["dtype"])
        if (entry / "tokens.bin").stat().st_size != facts["tokens"] * dtype.itemsize:
            return None
        if documents.shape != (facts["documents"], 2):
            return None
    except (OSError, ValueError, KeyError, TypeError, EOFError):
        return None
    tokens = np.asarray(np.memmap(entry / "tokens.bin", dtype, "r")) if facts["tokens"] else np.empty(0, dtype)
    return Tokenised(tokens, documents[:, 0].astype(np.int64), documents[:, 1].copy())


def _make(entry: Path, texts: Iterator[str], tokenizer: Tokenizer) -> Tokenised:
    """Tokenise into a folder of another name, then rename it: a reader never sees half an entry."""
    entry.parent.mkdir(parents=True, exist_ok=True)
    _remove_abandoned(entry)
    unfinished = entry.with_name(f"{entry.name}.{uuid4().hex}")
    unfinished.mkdir()
    try:
        _write(unfinished, texts, tokenizer)
        _put(unfinished, entry)
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)
    found = _load(entry)
    if found is None:
        raise OSError(f"{entry} vanished or changed while it was written")
    return found


def _write(folder: Path, texts: Iterator[str], tokenizer: Tokenizer) -> None:
    dtype = np.dtype(np.uint16 if tokenizer.num_tokens <= 65_536 else np.uint32)
    closing = [] if tokenizer.end_of_document is None else [tokenizer.end_of_document]
    hashes, ends = array("Q"), array("Q")
    position = 0

    def noted() -> Iterator[str]:
        for text in texts:
            if text:
                content = blake2b(text.encode("utf-8", "replace"), digest_size=8).digest()
                hashes.append(int.from_bytes(content, "little"))
                yield text

    with (folder / "tokens.bin").open("wb") as out:
        for tokens in tokenizer.encode_documents(noted()):
            out.write(tokens.astype(dtype).tobytes())
            out.write(np.array(closing, dtype).tobytes())
            position += len(tokens) + len(closing)
            ends.append(position)
        out.flush()
        os.fsync(out.fileno())  # a later start trusts the size
    np.save(folder / "documents.npy", np.column_stack((np.asarray(ends, np.uint64), np.asarray(hashes, np.uint64))))
    facts = {"dtype": dtype.name, "tokens": position, "documents": len(ends)}
    (folder / "entry.json").write_text(json.dumps(facts), "utf-8")


def _put(unfinished: Path, entry: Path) -> None:
    try:
        unfinished.rename(entry)
    except OSError:
        if _load(entry) is not None:
            return  # another process was faster
        shutil.rmtree(entry, ignore_errors=True)
        unfinished.rename(entry)


def _remove_abandoned(entry: Path) -> None:
    for other in entry.parent.glob(f"{entry.name}.*"):
        try:
            old = time.time() - other.stat().st_mtime > ABANDONED_SECONDS
        except OSError:
            continue
        if old:
            shutil.rmtree(other, ignore_errors=True)
