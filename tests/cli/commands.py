"""How does a test give a command, and read what it said?"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from attrs import frozen

ROOT = Path(__file__).parents[2]

PLAN = """forge 1

param peak_lr: Rate(1e-5 .. 1e-1) = 3e-3

## As small as a plan can be.
plan small {
  cluster   = { nodes = 1, devices_per_node = 2, arch = cpu }
  model     = decoder { layers = 2, dim = 32, heads = 4, ffn = 64, vocab = 64, context = 32 tokens }
  sources   = { counter = synthetic {} }
  batch     = { accumulation = 1, micro = 2 sequences, length = 32 tokens }
  optimizer = adamw { lr = peak_lr }
  budget    = { steps = 4 steps }

  checkpoint = { every = 2 steps }

  profile short {
    budget = { steps = 2 steps }
  }
}
"""
"""In its one form, without fault."""

FAULTY = PLAN.replace("heads = 4", "heads = 3")
"""3 heads do not divide a width of 32: FP0501."""


@frozen
class Said:
    exit_code: int
    out: str
    err: str


def run_process(*arguments: str, folder: Path, input: str | None = None, **environment: str) -> Said:
    """`forgeplan …` as a process of its own in `folder`."""
    process = subprocess.run(
        [sys.executable, "-m", "forgeplan", *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", **environment},
        input=input,
        capture_output=True,
        text=True,
        timeout=200,
    )
    return Said(process.returncode, process.stdout, process.stderr)
