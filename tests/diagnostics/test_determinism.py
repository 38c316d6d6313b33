"""Are all faults of a file reported, each once, in the same order and the same bytes whenever it is read?"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

FAULTY = """forge 1

let loop_a = loop_b + 1
let loop_b = loop_a + 1

plan faulty {
  cluster = {
    nodes            = 1
    devices_per_node = 4
    arch             = sm90
    hbn              = 141GB
  }

  model = decoder {
    layers  = 32
    dim     = 4_096
    heads   = 32
    ffn     = 14_336
    vocab   = 128_256
    context = 4Ki steps
    windo   = 1Ki tokens
  }

  sources = {
    web = tokens { path = "web/*.npy" }
  }

  batch = {
    global = 2MiB
    micro  = 4 tokens
    length = 4Ki tokens
    pakc   = true
  }

  optimizer = adamw {
    lr           = 3e-4
    weight_decay = -7
    bettas       = [0.9, 0.95]
  }

  schedule = cosine { floor = 150% }

  seed = somewhere

  budget = {
    tokens = 160B tokens
  }

  eval held_out {
    split = 1%
    every = 500 steps
  }
}
"""
EXPECTED = [
    (3, "FP0203"),
    (11, "FP0301"),
    (20, "FP0308"),
    (21, "FP0301"),
    (29, "FP0308"),
    (30, "FP0308"),
    (32, "FP0301"),
    (37, "FP0310"),
    (38, "FP0301"),
    (41, "FP0310"),
    (43, "FP0201"),
    (49, "FP0302"),
]
PROGRAM = """
import sys
from forgeplan.analysis import analyse
from forgeplan.diagnostics.formats import render_all
found = analyse("faulty.forge", text=sys.stdin.read())
for format in ("concise", "full", "json"):
    print(render_all(found.diagnostics, found.sources, format=format))
"""


def printed(hash_seed: int) -> str:
    """Every format, as a process of its own prints it."""
    environment = {**os.environ, "PYTHONHASHSEED": str(hash_seed), "PYTHONIOENCODING": "utf-8"}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        input=FAULTY.encode(),
        capture_output=True,
        env=environment,
        check=True,
        cwd=Path(__file__).parents[2],
    )
    return done.stdout.decode()


@pytest.fixture(scope="module")
def first() -> str:
    return printed(0)


def test_twelve_independent_faults_are_twelve_messages_sorted_by_place(first: str) -> None:
    lines = [line.split(":") for line in first.splitlines() if line.startswith("faulty.forge:")]
    assert [(int(line), kind[kind.index("[") + 1 : -1]) for _, line, _, kind, *_ in lines] == EXPECTED


@pytest.mark.parametrize("hash_seed", [1, 2, 4711])
def test_the_bytes_do_not_depend_on_the_order_of_hashes(first: str, hash_seed: int) -> None:
    assert printed(hash_seed) == first
