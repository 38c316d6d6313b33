"""Which directories below `checkpoints/` are checkpoints, and which of them are complete?

checkpoints/
  latest                  the name of the newest checkpoint, for people and tools; nothing is decided by it
  step-300/
    tensors/              what torch's distributed checkpoint wrote: `.metadata` and one `.distcp` file a rank
    state.json            counters
    data.json             what the data was when it was trained on
    plan.json             the execution plan it was trained with
    complete.json         written last: sizes and checksums of all of the above
  step-400.partial/       a save in progress, or one that died
"""

from __future__ import annotations

import re
from pathlib import Path

from attrs import frozen

from forgeplan.runtime.files import read_json_object

MARKER = "complete.json"
STATE = "state.json"
DATA = "data.json"
PLAN = "plan.json"
TENSORS = "tensors"
LATEST = "latest"
FORMAT = 1
_STEP = re.compile(r"step-(0|[1-9][0-9]*)")


@frozen
class FileFact:
    """Size and CRC-32 of one file, by its path relative to the checkpoint."""

    path: str
    size_bytes: int
    crc32: int


@frozen
class Checkpoint:
    """A committed checkpoint.

    `sequence` counts the commits of a run: after going back to an older step, the next commit is newer than the
    abandoned ones with higher step numbers.
    """

    step: int
    path: Path
    sequence: int
    files: tuple[FileFact, ...]
    world: int

    @property
    def size_bytes(self) -> int:
        return sum(f.size_bytes for f in self.files)


def step_name(step: int) -> str:
    return f"step-{step}"


def list_checkpoints(folder: Path) -> list[Checkpoint]:
    """The complete checkpoints in a folder, by step as a number. Anything else in it is passed over."""
    found = []
    for path, step in _step_folders(folder):
        checkpoint = read_marker(path)
        if checkpoint is not None and checkpoint.step == step:
            found.append(checkpoint)
    return sorted(found, key=lambda c: c.step)


def list_steps(folder: Path) -> list[int]:
    return [c.step for c in list_checkpoints(folder)]


def incomplete_steps(folder: Path) -> list[int]:
    """Steps whose directory has no valid marker, a save that died under its temporary name included."""
    complete = set(list_steps(folder))
    named = {step for _, step in _step_folders(folder)}
    named |= {step for _, step in _step_folders(folder, suffix=".partial")}
    return sorted(named - complete)


def newest(folder: Path) -> Checkpoint | None:
    """The checkpoint committed last."""
    return max(list_checkpoints(folder), key=by_age, default=None)


def by_age(checkpoint: Checkpoint) -> tuple[int, int]:
    return (checkpoint.sequence, checkpoint.step)


def read_marker(path: Path) -> Checkpoint | None:
    """The checkpoint in a directory as its marker describes it, or None without a valid marker."""
    data = read_json_object(path / MARKER)
    if data is None or data.get("format") != FORMAT:
        return None
    try:
        files = tuple(FileFact(str(f["path"]), int(f["size_bytes"]), int(f["crc32"])) for f in data["files"])
        return Checkpoint(int(data["step"]), path, int(data["sequence"]), files, int(data["world"]))
    except (KeyError, TypeError, ValueError):
        return None


def marker_content(checkpoint: Checkpoint) -> dict[str, object]:
    return {
        "format": FORMAT,
        "step": checkpoint.step,
        "sequence": checkpoint.sequence,
        "world": checkpoint.world,
        "files": [{"path": f.path, "size_bytes": f.size_bytes, "crc32": f.crc32} for f in checkpoint.files],
    }


def _step_folders(folder: Path, suffix: str = "") -> list[tuple[Path, int]]:
    if not folder.is_dir():
        return []
    found = []
    for path in folder.iterdir():
        if path.name.endswith(suffix) and path.is_dir() and not path.is_symlink():
            match = _STEP.fullmatch(path.name.removesuffix(suffix) if suffix else path.name)
            if match:
                found.append((path, int(match[1])))
    return found
