"""Is a launch environment understood as a whole or not at all, and a wrong size said with both sizes?"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path

import pytest
from torch._C._distributed_c10d import HashStore

from forgeplan.diagnostics.refusal import Refusal, UsageError
from forgeplan.plan.mesh import Mesh
from forgeplan.runtime.distributed import Meeting, Place, check_world, exit_code_of, place_in
from tests.runtime import tiny

WHOLE = {
    "RANK": "3",
    "WORLD_SIZE": "8",
    "LOCAL_RANK": "1",
    "LOCAL_WORLD_SIZE": "2",
    "MASTER_ADDR": "node-0",
    "MASTER_PORT": "29500",
}


def test_a_whole_environment_is_a_place_and_none_is_the_only_one() -> None:
    assert place_in(WHOLE) == Place(rank=3, world=8, local_rank=1, local_world=2)
    assert place_in({"PATH": "/bin"}) == Place(0, 1, 0, 1)


@pytest.mark.parametrize("name", sorted(set(WHOLE) - {"RANK"}))
def test_half_an_environment_is_refused_with_what_is_missing(name: str) -> None:
    rest = {key: value for key, value in WHOLE.items() if key != name}
    with pytest.raises(Refusal, match=f"FP1007: {name} is not set, though RANK = 3"):
        place_in(rest)
    if name != "MASTER_ADDR":
        with pytest.raises(Refusal, match=f"FP1007: {name} is 'two'"):
            place_in({**WHOLE, name: "two"})


def test_another_size_is_refused_with_both_and_a_line_that_fits() -> None:
    plan = tiny.execution_plan(mesh=Mesh(dp_shard=4))
    check_world(plan, Place(0, 4, 0, 4))
    with pytest.raises(Refusal, match=r"FP1003: .*for 4 processes on one machine; here are 4, 2 on this machine") as no:
        check_world(plan, Place(0, 4, 0, 2))
    assert no.value.help[0] == "start it as compiled: `torchrun --nproc-per-node 4 -m forgeplan run FILE`"


def together(world: int, check: Callable[[int], None]) -> list[BaseException | None]:
    """What `Meeting.agree` raises on each of `world` ranks, which are threads here."""
    store = HashStore()
    store.set_timeout(timedelta(seconds=5))

    def agree(rank: int) -> None:
        Meeting(Place(rank, world, rank, world), store).agree(lambda: check(rank))

    with ThreadPoolExecutor(world) as pool:
        return [future.exception() for future in [pool.submit(agree, rank) for rank in range(world)]]


def test_a_machine_of_another_size_is_refused_on_every_rank_and_none_waits() -> None:
    """Only rank 2 sees that its machine runs two processes; the others would wait for it for ten minutes."""
    plan = tiny.execution_plan(mesh=Mesh(dp_shard=3))
    found = together(3, lambda rank: check_world(plan, Place(rank, 3, 0, 2 if rank == 2 else 3)))
    assert [str(error) for error in found] == [str(found[2])] * 3
    assert str(found[2]).startswith("FP1003: ")
    assert together(3, lambda rank: None) == [None] * 3


def test_a_port_in_use_is_one_message() -> None:
    """Case: a static launcher, whose rank 0 opens the store itself, beside another program on the port."""
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = str(other.getsockname()[1])
        code = (
            "import sys; from forgeplan.runtime.run import run_worker;"
            " from forgeplan.runtime.options import RunOptions; sys.exit(run_worker(lambda: b'', RunOptions()))"
        )
        given = {"RANK": "0", "WORLD_SIZE": "2", "LOCAL_RANK": "0", "LOCAL_WORLD_SIZE": "2"}
        environment = {
            **os.environ, **given, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port,
            "PYTHONPATH": str(Path(__file__).parents[2]),
        }  # fmt: skip
        ended = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True)
    assert ended.returncode == 1
    assert f"error[FP1007]: rank 0 of 2 does not find the others through 127.0.0.1:{port}: " in ended.stderr
    assert "Traceback" not in ended.stderr


@pytest.mark.parametrize(
    ("error", "code"),
    [(SystemExit(7), 7), (SystemExit(None), 0), (SystemExit("text"), 1), (UsageError("x"), 2), (KeyError("x"), 3)],
)
def test_every_error_has_its_exit_code(error: BaseException, code: int) -> None:
    assert exit_code_of(error) == code


def test_the_launching_side_never_imports_torch() -> None:
    code = "import sys, forgeplan.runtime.launch; sys.exit('torch' in sys.modules)"
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    assert subprocess.run([sys.executable, "-c", code], env=environment).returncode == 0
