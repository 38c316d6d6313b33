"""A rank under a torchrun that is not ours: `torchrun … torchrun_worker.py PLAN [options as JSON] [disturbance]`."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from forgeplan.diagnostics.data_codes import FILES
from forgeplan.diagnostics.refusal import Refusal
from forgeplan.runtime.options import RunOptions
from forgeplan.runtime.run import run_worker


def disturb(kind: str) -> None:
    """Break something in this process before the run starts."""
    rank = int(os.environ["RANK"])
    if kind.startswith("nan-at-"):
        _poison_gradients({int(s) for s in kind.removeprefix("nan-at-").split(",")}, rank)
    elif kind == "rank-1-sees-no-checkpoints" and rank == 1:
        import forgeplan.runtime.checkpoint.layout as layout

        layout.read_marker = lambda path: None  # type: ignore[assignment]
    elif kind.startswith("opening-") and rank == 1:
        import forgeplan.runtime.data.opening as opening

        opening._tokenizer = _raising(kind.removeprefix("opening-"))  # type: ignore[assignment]
    elif kind.startswith("reading-") and rank == 1:
        from forgeplan.runtime.data.train_data import TrainData

        TrainData._read = _raising(kind.removeprefix("reading-"))  # type: ignore[method-assign]
    elif kind == "crash-on-rank-1" and rank == 1:
        import forgeplan.runtime.step as step

        def crash(*args: object) -> None:
            raise RuntimeError("a made-up crash")

        step.forward_loss = crash  # type: ignore[assignment]


def _raising(what: str) -> Callable[..., Any]:
    """A function that fails as the word says."""
    errors = {
        "refused": Refusal(FILES, "a made-up refusal"),
        "unreadable": OSError(errno.EIO, "Input/output error", "web.bin"),
        "out-of-memory": MemoryError(),
    }

    def fail(*args: object) -> None:
        raise errors[what]

    return fail


def _poison_gradients(steps: set[int], rank: int) -> None:
    """On rank 1, a NaN in one gradient after the backward of these steps; the loss stays finite."""
    from forgeplan.runtime import train

    made, real = [0], train.backward

    def poisoned(bundle, microbatches, counted):  # type: ignore[no-untyped-def]
        found = real(bundle, microbatches, counted)
        made[0] += 1
        if rank == 1 and made[0] in steps:
            gradient = next(p.grad for p in bundle.model.parameters() if p.grad is not None)
            gradient.to_local().view(-1)[0] = float("nan") if made[0] % 2 else float("inf")
        return found

    train.backward = poisoned


def main() -> int:
    plan, options, *kinds = sys.argv[1:]
    for kind in kinds:
        disturb(kind)
    return run_worker(Path(plan).read_bytes, RunOptions.from_json(options))


if __name__ == "__main__":
    sys.exit(main())
