"""What does torch's distributed checkpoint do differently for us: checksums, no absolute paths, no pickles?"""

from __future__ import annotations

import io
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import torch
from torch.distributed.checkpoint.default_planner import DefaultLoadPlanner
from torch.distributed.checkpoint.filesystem import FileSystem, FileSystemReader, FileSystemWriter
from torch.distributed.checkpoint.metadata import Metadata, StorageMeta, TensorStorageMetadata
from torch.distributed.checkpoint.planner import ReadItem

from forgeplan.diagnostics.refusal import Refusal
from forgeplan.diagnostics.refusals import FOREIGN_PICKLE
from forgeplan.runtime.checkpoint.checksum import SummedStream
from forgeplan.runtime.checkpoint.layout import FileFact
from forgeplan.runtime.checkpoint.unpickle import read_metadata

METADATA = ".metadata"


class _SummingFiles(FileSystem):
    def __init__(self) -> None:
        self.facts: dict[str, FileFact] = {}

    @contextmanager
    def create_stream(self, path: Any, mode: str) -> Generator[io.IOBase, None, None]:
        with super().create_stream(path, mode) as raw:
            if mode != "wb":
                yield raw
                return
            stream = SummedStream(cast(io.BufferedIOBase, raw))
            try:
                yield stream
            except RuntimeError as error:
                raise stream.failure or error from error
            name = Path(path).name
            self.facts[name] = FileFact(name, stream.size_bytes, stream.crc32)

    def rename(self, path: Any, new_path: Any) -> None:
        super().rename(path, new_path)
        fact = self.facts.pop(Path(path).name, None)
        if fact is not None:
            name = Path(new_path).name
            self.facts[name] = FileFact(name, fact.size_bytes, fact.crc32)


class Writer(FileSystemWriter):
    """Writes tensors and remembers size and checksum of every file this rank wrote, in `facts`."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, sync_files=True, overwrite=False)
        self._files = _SummingFiles()
        self.fs = self._files

    @property
    def facts(self) -> list[FileFact]:
        return sorted(self._files.facts.values(), key=lambda f: f.path)

    def storage_meta(self) -> StorageMeta:
        # The default holds the absolute path of the directory, which is a temporary one here and nobody's business
        # later.
        return StorageMeta()


class Reader(FileSystemReader):
    """`shapes` are the global shapes to read for tensors that are stored with more or fewer rows of padding."""

    def __init__(self, path: Path, shapes: Mapping[str, tuple[int, ...]] = {}) -> None:
        super().__init__(path)
        self.shapes = shapes

    def read_metadata(self, *args: Any, **kwargs: Any) -> Metadata:
        metadata = read_metadata(Path(self.path) / METADATA)
        if metadata.storage_meta is None:
            metadata.storage_meta = StorageMeta()
        metadata.storage_meta.load_id = self.load_id
        for name, shape in self.shapes.items():
            entry = metadata.state_dict_metadata[name]
            # Rows are read where stored chunks and wanted ones overlap: those that are not stored stay as they are.
            metadata.state_dict_metadata[name] = replace(cast(TensorStorageMetadata, entry), size=torch.Size(shape))
        return metadata


class Planner(DefaultLoadPlanner):
    def load_bytes(self, read_item: ReadItem, value: io.BytesIO) -> None:
        raise Refusal(
            FOREIGN_PICKLE,
            f"{read_item.dest_index.fqn!r} is stored as a pickle and was not read",
            "only checkpoints that forgeplan wrote can be loaded",
        )
