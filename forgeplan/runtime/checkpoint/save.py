"""How does a checkpoint come to be, so that at no moment a broken one can be taken for a whole one?

Everything is written below a temporary name, checksummed on its way, and forced to the disk; the marker with all sizes
and checksums is the last file; then one rename gives the directory its name. Only after that do `latest` and retention
move.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from attrs import asdict, frozen
from torch import Tensor
from torch.distributed.checkpoint.api import CheckpointException
from torch.distributed.checkpoint.state_dict_saver import save as save_distributed

from forgeplan.runtime.checkpoint import layout
from forgeplan.runtime.checkpoint.checksum import summed
from forgeplan.runtime.checkpoint.layout import Checkpoint, FileFact
from forgeplan.runtime.checkpoint.retention import prune
from forgeplan.runtime.checkpoint.storage import Writer
from forgeplan.runtime.files import json_bytes, replace, sync_folder, write_durably
from forgeplan.runtime.ranks import Ranks, SharedError
from forgeplan.runtime.state import TrainState


class SaveFailed(Exception):
    """A checkpoint could not be written; the earlier ones are as they were. Raised on every rank."""


@frozen
class Saver:
    """Saves into one folder. `keep` committed checkpoints stay, or all where it is None."""

    folder: Path
    plan: bytes
    data: Mapping[str, Any]
    """What the data is, as JSON values; a resumed run compares it."""
    keep: int | None
    ranks: Ranks

    def save(self, tensors: Mapping[str, Tensor], state: TrainState) -> Path:
        """Write and commit the checkpoint of `state.step`; collective. Raises SaveFailed, leaving nothing half
        committed.

        A DTensor is stored as the global tensor it stands for, and a plain tensor once: the same names and shapes for
        every layout. A committed checkpoint of the same step is replaced.
        """
        partial = self.folder / f"{layout.step_name(state.step)}.partial"
        try:
            self.ranks.from_first(lambda: self._prepare(partial))
            facts = self._write_tensors(partial, tensors)
            self.ranks.from_first(lambda: self._commit(partial, facts, state))
        except (SharedError, CheckpointException) as error:
            if self.ranks.is_first:
                shutil.rmtree(partial, ignore_errors=True)
            raise SaveFailed(f"step {state.step} was not saved to {self.folder}: {_reason(error)}") from error
        return self.folder / layout.step_name(state.step)

    def _prepare(self, partial: Path) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        sync_folder(self.folder.parent)
        if partial.exists():
            shutil.rmtree(partial)
        (partial / layout.TENSORS).mkdir(parents=True)

    def _write_tensors(self, partial: Path, tensors: Mapping[str, Tensor]) -> list[FileFact]:
        writer = Writer(partial / layout.TENSORS)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="torch.distributed is disabled")
            save_distributed(dict(tensors), storage_writer=writer, no_dist=self.ranks.world == 1)
        mine = [asdict(fact) for fact in writer.facts]
        return [FileFact(**fact) for facts in self.ranks.from_all(lambda: mine) for fact in facts]

    def _commit(self, partial: Path, tensor_facts: list[FileFact], state: TrainState) -> None:
        small = {layout.STATE: json_bytes(asdict(state)), layout.DATA: json_bytes(self.data), layout.PLAN: self.plan}
        for name, data in small.items():
            write_durably(partial / name, data)
        facts = [FileFact(f"{layout.TENSORS}/{f.path}", f.size_bytes, f.crc32) for f in tensor_facts]
        facts += [summed(name, data) for name, data in small.items()]
        before = layout.newest(self.folder)
        checkpoint = Checkpoint(
            step=state.step,
            path=partial,
            sequence=before.sequence + 1 if before else 1,
            files=tuple(sorted(facts, key=lambda f: f.path)),
            world=self.ranks.world,
        )
        sync_folder(partial / layout.TENSORS)
        write_durably(partial / layout.MARKER, json_bytes(layout.marker_content(checkpoint)))
        sync_folder(partial)
        self._take_name(partial, self.folder / layout.step_name(state.step))
        # It counts from here on: what follows catches up with the next save, and is no reason to call this one failed.
        with contextlib.suppress(OSError):
            replace(self.folder / layout.LATEST, f"{layout.step_name(state.step)}\n".encode())
            prune(self.folder, self.keep)

    def _take_name(self, partial: Path, final: Path) -> None:
        if final.exists():
            aside = final.with_name(final.name + ".pruned")
            shutil.rmtree(aside, ignore_errors=True)
            os.rename(final, aside)
        os.rename(partial, final)
        sync_folder(self.folder)


def _reason(error: Any) -> str:
    if isinstance(error, CheckpointException):
        rank, (cause, _) = next(iter(sorted(error.failures.items())))
        return f"rank {rank}: {cause}"
    return str(error)
