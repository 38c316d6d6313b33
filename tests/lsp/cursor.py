"""A document with a cursor in it, as features see it."""

from __future__ import annotations

from pathlib import Path

from forgeplan.analysis import analyse
from forgeplan.lsp.snapshot import Snapshot
from forgeplan.lsp.workspace import Documents

CURSOR = "│"


def at_cursor(folder: Path, text: str, *, analysed: bool = False) -> tuple[Snapshot, int, Documents]:
    """The open document without its cursor, the cursor's offset, and the workspace."""
    at = text.index(CURSOR)
    text = text.replace(CURSOR, "")
    workspace = Documents(folders=[folder])
    path = folder / "a.forge"
    snapshot = workspace.put(path.as_uri(), 1, text)
    if analysed:
        snapshot.analysis = analyse(str(path), text=text, unsaved=workspace.unsaved())
    return snapshot, at, workspace


PLAN = """forge 1

from "std:clusters" import cpu_host
from "std:models" import llama3_8b

## How wide.
let width = 64
param peak: Rate(1e-6 .. 1e-2) = 1e-3

plan small {
  cluster   = cpu_host { devices_per_node = 2 }
  model     = decoder { layers = 2, dim = width, heads = 4, vocab = 257, context = 64 tokens }
  tokenizer = byte
  sources   = { py = python_source, made = synthetic }
  mixture   = { py = 50%, made = 50% }
  batch     = { global = 8 sequences, micro = 2 sequences, length = 64 tokens }
  optimizer = adamw { lr = peak }
  budget    = { steps = 20 steps }

  eval held { source = py, split = 1%, every = 10 steps }
}
"""
