"""Does a pool say which rank failed and why, and does it leave nothing behind?"""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest
from torch import distributed

from forgeplan.plan.mesh import Mesh
from forgeplan.runtime.selftest import pool as pool_module
from forgeplan.runtime.selftest.bench import Bench
from forgeplan.runtime.selftest.pool import Pool, Pools, RankFailed
from tests.runtime.tiny import decoder, execution_plan

HERE = __name__


def ranks() -> tuple[int, int, int]:
    return distributed.get_rank(), distributed.get_world_size(), os.getpid()


def say_and_die_on_one_rank() -> None:
    if distributed.get_rank() == 1:
        os.write(2, b"the last words\n")
        os._exit(7)


def raise_on_one_rank() -> None:
    if distributed.get_rank() == 1:
        raise ValueError("on purpose\nwith a second line")


def wait_for_ever_on_one_rank() -> None:
    if distributed.get_rank() == 1:
        time.sleep(60)


class Whole:
    """What refers to itself as a model does: only a collector finds that nobody else refers to it."""

    def __init__(self) -> None:
        self.part = self
        self.group = distributed.new_group([0, 1])


def number_of_threads() -> int:
    """Of this rank; a group has threads until the last reference to it is gone."""
    found = len(os.listdir("/proc/self/task"))
    Whole()
    return found


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="threads are counted in /proc")
def test_a_case_leaves_no_threads_behind() -> None:
    pool = Pool(2)
    numbers = [pool.run(f"{HERE}:number_of_threads")[0] for _ in range(6)]
    pool.kill()
    assert numbers[-1] < numbers[1] + 4, "three of every case would be twelve"


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="threads are counted in /proc")
def test_layouts_that_were_trained_leave_no_threads_behind() -> None:
    """What DTensor caches of their meshes would keep twelve for each layout, in ranks that wait for the next case."""
    with Bench() as bench:
        numbers = []
        for mesh in (Mesh(dp_shard=2), Mesh(tp=2), Mesh(cp=2)):
            bench.trained(execution_plan(model=decoder(), mesh=mesh, total_steps=1), packed=False)
            numbers.append(bench.pools[2].run(f"{HERE}:number_of_threads")[0])
    assert numbers[-1] <= numbers[0]


def test_a_pool_gets_new_ranks_after_many_cases(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool_module, "MOST_CASES", 2)
    pools = Pools()
    seen = [pools[2].run(f"{HERE}:ranks")[0][2] for _ in range(4)]
    pools.close()
    assert seen[0] == seen[1] != seen[2] == seen[3]


def test_ranks_live_on_from_case_to_case_each_in_a_new_group() -> None:
    pool = Pool(2)
    first, second = pool.run(f"{HERE}:ranks"), pool.run(f"{HERE}:ranks")
    pool.kill()
    assert first == second
    assert [answer[:2] for answer in first] == [(0, 2), (1, 2)]
    assert not Path(pool.folder.name).exists()


@pytest.mark.parametrize(
    ("function", "reason", "details"),
    [
        ("raise_on_one_rank", "rank 1: ValueError: on purpose", "with a second line"),
        ("say_and_die_on_one_rank", "rank 1: the process died", "the last words"),
        ("wait_for_ever_on_one_rank", "no answer from 1 ranks in 2 s", ""),
    ],
)
def test_a_failure_names_rank_and_reason_and_ends_the_pool(function: str, reason: str, details: str) -> None:
    pool = Pool(2, patience_seconds=2 if "wait" in function else 60)
    with pytest.raises(RankFailed) as failed:
        pool.run(f"{HERE}:{function}")
    assert failed.value.reason == reason
    assert details in failed.value.details
    assert not any(process.is_alive() for process in pool.ranks)
    assert not Path(pool.folder.name).exists()


def test_a_pool_that_ended_is_replaced_when_it_is_asked_for() -> None:
    pools = Pools()
    with pytest.raises(RankFailed):
        pools[2].run(f"{HERE}:raise_on_one_rank")
    (first, *_), _ = pools[2].run(f"{HERE}:ranks")
    assert first == 0
    kept = pools[2]
    pools.close()
    assert not kept.alive
