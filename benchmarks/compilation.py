"""How long does it take from a plan to its execution plan? `python -m benchmarks.compilation`

Method: `plans/dense_70b.forge`, and the same with plans that vary it, one hundred lines. Cold commands are fresh
processes, the best of seven, wall time and processor time. Warm compilations are processor time in one process, the
median of fifteen; those for 8 and for 16,384 nodes take turns.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

from forgeplan.analysis import analyse
from forgeplan.compiler import emit

PLANS = Path(__file__).parents[1] / "plans"


def hundred_lines() -> str:
    """The plan dense_70b with plans that vary it, 100 lines in all."""
    lines = (PLANS / "dense_70b.forge").read_text(encoding="utf-8").splitlines()
    number = 0
    while len(lines) <= 95:
        number += 1
        lines += ["", f"plan variant_{number} extends dense_70b {{"]
        lines += [
            f"  seed              = {number}",
            f"  optimizer.lr      = {number}e-5",
            "  batch.accumulation = 8",
            "}",
        ]
    return "\n".join(lines) + "\n"


def compile_one(path: Path, plan: str, *overrides: str) -> None:
    analysis = analyse(str(path), plan=plan, overrides=overrides)
    emit(analysis.jobs[0], sources=analysis.sources)


def cold(*arguments: str) -> tuple[float, float]:
    """Wall and processor seconds of the fastest of seven fresh processes."""
    found = []
    for _ in range(7):
        start, used = time.perf_counter(), _children_seconds()
        subprocess.run([sys.executable, "-m", "forgeplan", *arguments], check=True, stdout=subprocess.DEVNULL)
        found.append((time.perf_counter() - start, _children_seconds() - used))
    return min(found)


def _children_seconds() -> float:
    times = os.times()
    return times.children_user + times.children_system


def processor_seconds(action: Callable[[], None]) -> float:
    start = time.process_time()
    action()
    return time.process_time() - start


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "hundred.forge")
        path.write_text(hundred_lines(), encoding="utf-8")
        lines = len(path.read_text(encoding="utf-8").splitlines())
        wall, used = cold("lint", str(path))
        print(f"lint of {lines} lines, cold            {wall * 1000:8.0f} ms, {used * 1000:.0f} ms of processor time")
        compile_one(path, "variant_3")
        warm = median(processor_seconds(lambda: compile_one(path, "variant_3")) for _ in range(15))
        print(f"compile one of its plans, warm     {warm * 1000:8.1f} ms")
    large = PLANS / "dense_70b.forge"
    pairs = []
    for _ in range(15):
        few = processor_seconds(lambda: compile_one(large, "dense_70b"))
        many = processor_seconds(lambda: compile_one(large, "dense_70b", "cluster.nodes=16384"))
        pairs.append((few, many))
    print(f"compile dense_70b, 8 nodes         {median(a for a, _ in pairs) * 1000:8.1f} ms")
    print(f"compile dense_70b, 16,384 nodes    {median(b for _, b in pairs) * 1000:8.1f} ms")
    print(f"ratio                              {median(b / a for a, b in pairs):8.3f}")


if __name__ == "__main__":
    main()
