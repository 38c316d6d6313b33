"""How fast is the language read? `python -m benchmarks.language` prints lines a second, by size, and the cold start.

Method: processor time (`time.process_time`), the best of several runs, of a plan text of about one hundred lines
repeated to the size named. The cold start is a fresh interpreter that imports the parser and reads one plan; its
imports alone and a bare interpreter are printed beside it. Nothing here is asserted: machines differ.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import time
from collections.abc import Callable

from forgeplan.diagnostics.source import Source
from forgeplan.dsl.formatter import format_text
from forgeplan.dsl.lexer import lex
from forgeplan.dsl.parser import parse

BLOCK = """
## Peak learning rate after warm-up.
param peak_lr: Rate(1e-6 .. 1e-2) = 3e-4

let length = 4Ki tokens  # Ki, Mi, Gi are powers of two

plan dense_8b {
  cluster   = h200_node { devices_per_node = 4 }
  seed      = 17
  model     = llama3_8b { context = length }
  precision = { params = fp32, compute = bf16, reduce = fp32, moments = bf16 }

  sources = {
    web  = tokens { path = "shards/web/*.npy" }
    code = tokens { path = "shards/code/${plan.name}/*.npy" }
  }
  mixture = { web = 85%, code = 15% }

  batch     = { global = 2Mi tokens, micro = 4 sequences, length = length }
  optimizer = adamw { lr = peak_lr, betas = [0.9, 0.95], weight_decay = 0.1 }
  schedule  = cosine { warmup = 3%, floor = 10% }

  mesh  = { dp_replicate = 2 }
  apply = [
    recompute { mode = full },
    fsdp,
  ]

  budget     = { tokens = 20 * 8B tokens, wall = 72h }
  checkpoint = { every = 30min, keep = 3 }
  eval held_out { source = web, split = 1%, every = 500 steps, batches = 50 }

  assert checkpoint.every <= 1h else "this queue preempts without notice"

  profile smoke {
    model.layers = 2
    batch.global = 64Ki tokens
    delete eval.held_out
  }
}
"""
SIZES = (100, 1_000, 10_000, 100_000)
COLD = {
    "a bare interpreter": "pass",
    "importing the parser": "import forgeplan.dsl.parser",
    "importing it and reading 100 lines": (
        "import sys; from forgeplan.dsl.parser import parse; from forgeplan.diagnostics.source import Source; "
        "parse(Source('plan', sys.argv[1]))"
    ),
}


def text_of(lines: int) -> str:
    """A plan text without faults of about this many lines."""
    return "forge 1\n" + BLOCK * max(1, round(lines / BLOCK.count("\n")))


def seconds(action: Callable[[], object], repeats: int) -> float:
    """Processor time of the fastest of several runs."""
    best = float("inf")
    for _ in range(repeats):
        start = time.process_time()
        action()
        best = min(best, time.process_time() - start)
    return best


def reading() -> None:
    """Lines a second of the lexer, of the whole parser and of the guarded formatter."""
    print(f"{'lines':>9} {'lexed/s':>11} {'parsed/s':>11} {'formatted/s':>12}")
    for size in SIZES:
        text = text_of(size)
        lines, repeats = text.count("\n"), 5 if size <= 10_000 else 2
        lexed = lines / seconds(lambda text=text: lex("plan", text), repeats)  # type: ignore[misc]
        parsed = lines / seconds(lambda text=text: parse(Source("plan", text)), repeats)  # type: ignore[misc]
        formatted = lines / seconds(lambda text=text: format_text(text), 1) if size <= 10_000 else 0
        print(f"{lines:>9,} {lexed:>11,.0f} {parsed:>11,.0f} {formatted or '–':>12{',.0f' if formatted else ''}}")


def cold_start() -> None:
    """Processor time of a fresh process, the best of seven."""
    for name, code in COLD.items():
        best = float("inf")
        for _ in range(7):
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            subprocess.run([sys.executable, "-c", code, str(text_of(100))], check=True)
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            best = min(best, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
        print(f"{name:<36} {best * 1000:6.0f} ms")


def main() -> None:
    reading()
    print()
    cold_start()


if __name__ == "__main__":
    main()
