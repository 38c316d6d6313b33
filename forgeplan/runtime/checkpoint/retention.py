"""Which checkpoints may go?"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
from pathlib import Path

from forgeplan.runtime.checkpoint import layout

_PRUNED = re.compile(r"step-[0-9]+\.pruned")


def prune(folder: Path, keep: int | None) -> list[int]:
    """Delete all but the `keep` newest committed checkpoints, and return the steps that went.

    Directories without a marker, of another name, or that the marker of another step stands in are neither counted nor
    touched. A checkpoint loses its name first and its files then, so that it is never seen in part.
    """
    if keep is None:
        return []
    _finish(folder)
    gone = []
    for checkpoint in sorted(layout.list_checkpoints(folder), key=layout.by_age)[:-keep]:
        os.rename(checkpoint.path, checkpoint.path.with_name(checkpoint.path.name + ".pruned"))
        gone.append(checkpoint.step)
    _finish(folder)
    return gone


def _finish(folder: Path) -> None:
    """Delete what has lost its name, now or before a crash. Files that resist stay until the next time."""
    for path in folder.iterdir():
        if _PRUNED.fullmatch(path.name) and path.is_dir() and not path.is_symlink():
            with contextlib.suppress(OSError):
                shutil.rmtree(path)
