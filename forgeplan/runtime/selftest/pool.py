"""How does a process get ranks to try plans on, without paying for an import of torch each time?

A fork server imports torch once; the ranks of one world size live until the pool is closed and get functions by name. A
pool in which a rank failed is killed, as its other ranks may wait in a collective; the next case gets a new one.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import multiprocessing
import operator
import os
import pickle
import signal
import sys
import tempfile
import traceback
from datetime import timedelta
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

PRELOADED = [
    "torch.utils.checkpoint",
    "forgeplan.runtime.operations.fsdp",
    "forgeplan.runtime.pipeline",
    "forgeplan.runtime.optim.adamw",
    "forgeplan.runtime.selftest.executed",
]
PATIENCE_SECONDS = 180
"""How long no rank may answer: several times what the slowest case takes on two busy cores."""
PATIENCE_AT_END_SECONDS = 5
MOST_CASES = 25
"""After so many, ranks are new ones: what a library keeps of a case, graphs above all, keeps its groups."""
CACHES_OF_MESHES = (
    ("torch.distributed.tensor.debug", "_clear_sharding_prop_cache"),
    ("torch.distributed.tensor._redistribute", "clear_redistribute_planner_cache"),
    ("torch.distributed.tensor._redistribute", "_gen_transform_infos.cache_clear"),
    ("torch.distributed.tensor._collective_utils", "MeshTopoInfo.build_from_mesh.cache_clear"),
)
"""What empties them."""
BACKENDS = {"cpu": "gloo", "cuda": "cpu:gloo,cuda:nccl"}
NUM_LINES_SHOWN = 5


class RankFailed(Exception):
    """A rank raised, died or did not answer. `str` is one line, `details` the traceback or what the rank printed."""

    def __init__(self, message: str, details: str = "") -> None:
        super().__init__(message)
        self.details = details

    def __str__(self) -> str:
        return "\n".join(filter(None, [self.args[0], self.details]))

    @property
    def reason(self) -> str:
        return str(self.args[0])


class Pool:
    """`world` processes, each with one thread, on CPUs or each with an accelerator of its own.

    `run("package.module:function", …)` calls a function on all of them.
    """

    def __init__(self, world: int, device_type: str = "cpu", patience_seconds: float = PATIENCE_SECONDS) -> None:
        os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
        os.environ["OMP_NUM_THREADS"] = "1"
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload(PRELOADED)
        self.folder = tempfile.TemporaryDirectory(prefix="forgeplan-pool-", ignore_cleanup_errors=True)
        self.patience_seconds = patience_seconds
        self.num_cases = 0
        self.pipes: list[Connection] = []
        self.ranks = []
        for rank in range(world):
            ours, theirs = context.Pipe()
            args = (theirs, rank, world, device_type, patience_seconds, self._log(rank))
            process = context.Process(target=serve, args=args, daemon=True)
            process.start()
            theirs.close()
            self.pipes.append(ours)
            self.ranks.append(process)

    def run(self, function: str, *args: Any) -> list[Any]:
        """What the function returns on each rank. Raises RankFailed, and the pool is dead then."""
        self.num_cases += 1
        store = str(Path(self.folder.name) / f"store-{self.num_cases}")
        answers: dict[int, Any] = {}
        try:
            for rank, pipe in enumerate(self.pipes):
                self._send(rank, pipe, (function, args, store))
            while len(answers) < len(self.pipes):
                answers |= self._answers([rank for rank in range(len(self.pipes)) if rank not in answers])
        except BaseException:
            self.kill()
            raise
        return [answers[rank] for rank in range(len(self.pipes))]

    def _send(self, rank: int, pipe: Connection, case: tuple[Any, ...]) -> None:
        try:
            pipe.send(case)
        except OSError as error:
            raise RankFailed(f"rank {rank}: the process died", self._last_lines(rank)) from error

    def _answers(self, missing: list[int]) -> dict[int, Any]:
        """Answers of those of the missing ranks that have one; waits for at least one."""
        ready = wait([self.pipes[rank] for rank in missing], self.patience_seconds)
        if not ready:
            raise RankFailed(f"no answer from {len(missing)} ranks in {self.patience_seconds:.0f} s")
        found: dict[int, Any] = {}
        for rank in missing:
            if self.pipes[rank] not in ready:
                continue
            try:
                failure, answer = pickle.loads(self.pipes[rank].recv_bytes())
            except (EOFError, OSError) as error:
                raise RankFailed(f"rank {rank}: the process died", self._last_lines(rank)) from error
            if failure:
                raise RankFailed(f"rank {rank}: {failure}", answer)
            found[rank] = answer
        return found

    def _log(self, rank: int) -> str:
        return str(Path(self.folder.name) / f"rank-{rank}.log")

    def _last_lines(self, rank: int) -> str:
        try:
            printed = Path(self._log(rank)).read_text(encoding="utf-8", errors="replace")
        except OSError:
            return ""
        return "\n".join(printed.splitlines()[-NUM_LINES_SHOWN:])

    @property
    def alive(self) -> bool:
        return all(process.is_alive() for process in self.ranks)

    def close(self) -> None:
        """Let ranks that wait for a case end by themselves, which gives back what they hold of the system."""
        for pipe in self.pipes:
            pipe.close()
        for process in self.ranks:
            process.join(PATIENCE_AT_END_SECONDS)
        self.kill()

    def kill(self) -> None:
        for process in self.ranks:
            process.kill()
            process.join()
        for pipe in self.pipes:
            pipe.close()
        self.folder.cleanup()


class Pools:
    """One pool for each world size that was asked for."""

    def __init__(self, device_type: str = "cpu") -> None:
        self.device_type = device_type
        self._by_world: dict[int, Pool] = {}

    def __getitem__(self, world: int) -> Pool:
        pool = self._by_world.get(world)
        if pool is not None and not pool.alive:
            pool.kill()
            pool = None
        elif pool is not None and pool.num_cases >= MOST_CASES:
            pool.close()
            pool = None
        if pool is None:
            pool = self._by_world[world] = Pool(world, self.device_type)
        return pool

    def close(self) -> None:
        for pool in self._by_world.values():
            pool.close()


def serve(pipe: Connection, rank: int, world: int, device_type: str, patience_seconds: float, log: str) -> None:
    """The life of a rank: one process group a case, so that groups do not pile up."""
    # Ctrl-C reaches all processes of a terminal: the one that started the ranks ends them.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _print_into(log)
    import torch
    from torch import distributed

    torch.set_num_threads(1)
    # What is imported stays: each collection would look through all of it.
    gc.freeze()
    if device_type == "cuda":
        torch.cuda.set_device(rank)
    while True:
        try:
            function, args, store = pipe.recv()
        except EOFError:
            return
        try:
            distributed.init_process_group(
                BACKENDS[device_type],
                init_method=f"file://{store}",
                rank=rank,
                world_size=world,
                timeout=timedelta(seconds=patience_seconds),
            )
            module, name = function.split(":")
            # By value: else every tensor of an answer is a file that both sides keep open.
            answer = pickle.dumps(("", getattr(importlib.import_module(module), name)(*args)))
            distributed.destroy_process_group()
        except BaseException as error:
            answer = pickle.dumps((in_one_line(error), traceback.format_exc()))
        with contextlib.suppress(BrokenPipeError):
            pipe.send_bytes(answer)
        _let_go()


def _let_go() -> None:
    """Let the groups of a case end, with three threads of each that look for work a thousand times a second.

    Caches of DTensor keep their meshes, compiled graphs keep models, and models refer to themselves.
    """
    for module, clear in CACHES_OF_MESHES:
        # Names of torch 2.13. What another version keeps is gone with the ranks, after MOST_CASES.
        with contextlib.suppress(ImportError, AttributeError):
            operator.attrgetter(clear)(importlib.import_module(module))()
    if (dynamo := sys.modules.get("torch._dynamo")) is not None:
        dynamo.reset()
    gc.collect()


def _print_into(log: str) -> None:
    """What libraries print on a rank belongs into no table and no JSON."""
    number = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    os.dup2(number, 1)
    os.dup2(number, 2)
    os.close(number)


def in_one_line(error: BaseException) -> str:
    first = next(iter(str(error).strip().splitlines()), "")
    return f"{type(error).__name__}: {first}".removesuffix(": ")
