"""How is `.metadata`, a pickle, read without executing what it says?

torch's distributed checkpoint describes its files in a pickle, and a pickle can name any function of any module. This
reader resolves a short list of plain data classes and nothing else.
"""

from __future__ import annotations

import pickle
from pathlib import Path, PurePosixPath
from typing import IO, Any

import torch
from torch.distributed.checkpoint import metadata as dcp_metadata
from torch.distributed.checkpoint.filesystem import _StorageInfo
from torch.distributed.checkpoint.metadata import Metadata

from forgeplan.diagnostics.refusal import Refusal
from forgeplan.diagnostics.refusals import FOREIGN_PICKLE

_LARGEST_BYTES = 1 << 30
_CLASSES = (
    "Metadata",
    "MetadataIndex",
    "ChunkStorageMetadata",
    "TensorStorageMetadata",
    "TensorProperties",
    "StorageMeta",
    "_MEM_FORMAT_ENCODING",
)
_ALLOWED: dict[tuple[str, str], Any] = {
    **{(dcp_metadata.__name__, name): getattr(dcp_metadata, name) for name in _CLASSES},
    (_StorageInfo.__module__, "_StorageInfo"): _StorageInfo,
    ("torch", "Size"): torch.Size,
    ("torch.serialization", "_get_layout"): torch.serialization._get_layout,
    **{("torch", name): value for name, value in vars(torch).items() if isinstance(value, torch.dtype)},
}


def read_metadata(path: Path) -> Metadata:
    """The tensor layouts that a `.metadata` file describes. Raises Refusal FP1014 for anything else, and OSError."""
    if path.stat().st_size > _LARGEST_BYTES:
        raise _refused(path, f"it has more than {_LARGEST_BYTES:,} bytes")
    with path.open("rb") as stream:
        found = _read(stream, path)
    for name, entry in found.state_dict_metadata.items():
        if not isinstance(entry, dcp_metadata.TensorStorageMetadata):
            raise _refused(path, f"{name!r} is not a tensor")
    for info in found.storage_data.values():
        if PurePosixPath(info.relative_path).name != info.relative_path:
            raise _refused(path, f"it points outside the checkpoint, to {info.relative_path!r}")
    return found


class _Unpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        try:
            return _ALLOWED[module, name]
        except KeyError:
            raise pickle.UnpicklingError(f"it names {module}.{name}") from None


def _read(stream: IO[bytes], path: Path) -> Metadata:
    try:
        found = _Unpickler(stream).load()
    except Refusal:
        raise
    except Exception as error:  # a damaged pickle can fail in any way; each of them is this refusal
        raise _refused(path, str(error) or type(error).__name__) from error
    well_formed = (
        isinstance(found, Metadata)
        and isinstance(found.state_dict_metadata, dict)
        and isinstance(found.storage_data, dict)
        and all(isinstance(info, _StorageInfo) for info in found.storage_data.values())
    )
    if not well_formed:
        raise _refused(path, "it does not describe tensors")
    return found


def _refused(path: Path, reason: str) -> Refusal:
    return Refusal(
        FOREIGN_PICKLE,
        f"{path} was not read: {reason}",
        "only checkpoints that forgeplan wrote can be loaded; if this is one, it was altered",
    )
