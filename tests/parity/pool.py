"""How do test cases get gloo ranks without paying for an import of torch each time?

A fork server imports torch once; the ranks of one world size live for the whole session and get functions by name.
A pool in which a rank failed is killed, as its other ranks may wait in a collective; the next case gets a new one.
"""

from __future__ import annotations

import importlib
import multiprocessing
import os
import tempfile
import traceback
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

PRELOADED = [
    "torch",
    "torch.distributed.fsdp",
    "torch.distributed.tensor",
    "torch.utils.checkpoint",
    "forgeplan.runtime.train",
    "forgeplan.runtime.operations.fsdp",
    "forgeplan.runtime.pipeline",
    "forgeplan.runtime.optim.adamw",
    "forgeplan.runtime.model.decoder",
]
CASE_SECONDS = 90


class RankFailed(AssertionError):
    """A rank raised; the message holds its traceback."""


class Pool:
    """`world` processes, each with one thread. `run("package.module:function", …)` calls it on all of them."""

    def __init__(self, world: int) -> None:
        os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
        os.environ["OMP_NUM_THREADS"] = "1"
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload(PRELOADED)
        self.folder = tempfile.TemporaryDirectory(prefix="forgeplan-pool-")
        self.num_cases = 0
        self.pipes: list[Connection] = []
        self.ranks = []
        for rank in range(world):
            ours, theirs = context.Pipe()
            process = context.Process(target=serve, args=(theirs, rank, world), daemon=True)
            process.start()
            theirs.close()
            self.pipes.append(ours)
            self.ranks.append(process)

    def run(self, function: str, *args: Any) -> list[Any]:
        """Raises RankFailed with the first traceback, or where a rank does not answer in time."""
        self.num_cases += 1
        store = str(Path(self.folder.name) / f"store-{self.num_cases}")
        for pipe in self.pipes:
            pipe.send((function, args, store))
        answers: dict[int, Any] = {}
        while len(answers) < len(self.pipes):
            missing = [pipe for rank, pipe in enumerate(self.pipes) if rank not in answers]
            ready = wait(missing, CASE_SECONDS)
            if not ready:
                self.kill()
                raise RankFailed(f"{function}: no answer from {len(missing)} ranks in {CASE_SECONDS} s")
            for pipe in ready:
                rank = self.pipes.index(pipe)
                try:
                    worked, answers[rank] = pipe.recv()
                except EOFError:
                    worked, answers[rank] = False, "the process died"
                if not worked:
                    self.kill()
                    raise RankFailed(f"rank {rank}: {answers[rank]}")
        return [answers[rank] for rank in range(len(self.pipes))]

    @property
    def alive(self) -> bool:
        return all(process.is_alive() for process in self.ranks)

    def kill(self) -> None:
        for process in self.ranks:
            process.kill()
            process.join()
        self.folder.cleanup()


class Pools:
    """The pools of a session, by world size."""

    def __init__(self) -> None:
        self._by_world: dict[int, Pool] = {}

    def __getitem__(self, world: int) -> Pool:
        pool = self._by_world.get(world)
        if pool is None or not pool.alive:
            pool = self._by_world[world] = Pool(world)
        return pool

    def close(self) -> None:
        for pool in self._by_world.values():
            pool.kill()


def serve(pipe: Connection, rank: int, world: int) -> None:
    """The life of a rank: one process group a case, so that groups do not pile up."""
    import torch
    from torch import distributed

    torch.set_num_threads(1)
    while True:
        try:
            function, args, store = pipe.recv()
        except EOFError:
            return
        try:
            distributed.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=world)
            module, name = function.split(":")
            answer = (True, getattr(importlib.import_module(module), name)(*args))
            distributed.destroy_process_group()
        except BaseException:
            answer = (False, traceback.format_exc())
        pipe.send(answer)
