"""Where do the numbers of a run stand for other programs? One strict JSON object a line, each step once."""

from __future__ import annotations

import json
import os
from pathlib import Path

from attrs import define, field

from forgeplan.runtime.files import sync_folder
from forgeplan.runtime.metrics.records import Record, strict


@define
class MetricsFile:
    """`metrics.jsonl`, opened for the steps after the one a run goes on from."""

    path: Path
    _stream: object = field(repr=False)

    @classmethod
    def open_after(cls, path: Path, step: int) -> MetricsFile:
        """Append behind the first `step` steps; lines of later ones, which are trained again, are dropped."""
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.exists():
            _keep_until(path, step)
        return cls(path, path.open("a", encoding="utf-8"))

    def write(self, record: Record) -> None:
        line = json.dumps(strict(record), allow_nan=False, ensure_ascii=False)
        self._stream.write(line + "\n")  # type: ignore[attr-defined]
        self._stream.flush()  # type: ignore[attr-defined]

    def close(self) -> None:
        self._stream.close()  # type: ignore[attr-defined]


def evaluations_after(path: Path, step: int) -> frozenset[str]:
    """Names of the evaluations that the file holds of the model after `step` steps."""
    if not path.exists():
        return frozenset()
    lines = path.read_text(encoding="utf-8", errors="replace").splitlines(keepends=True)
    found = [json.loads(line) for line in lines if _is_of(line, step)]
    return frozenset(str(r["name"]) for r in found if r.get("kind") == "eval" and r["step"] == step and "name" in r)


def _keep_until(path: Path, step: int) -> None:
    """Rewrite the file without later steps and without lines that a crash left unfinished."""
    lines = path.read_text(encoding="utf-8", errors="replace").splitlines(keepends=True)
    kept = [line for line in lines if _is_of(line, step)]
    if len(kept) == len(lines):
        return
    temporary = path.with_name(path.name + ".tmp")
    temporary.write_text("".join(kept), encoding="utf-8")
    os.replace(temporary, path)
    sync_folder(path.parent)


def _is_of(line: str, step: int) -> bool:
    try:
        record = json.loads(line)
        return line.endswith("\n") and isinstance(record, dict) and int(record["step"]) <= step
    except (ValueError, KeyError, TypeError):
        return False
