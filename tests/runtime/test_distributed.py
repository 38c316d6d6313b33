"""Is a launch environment understood as a whole or not at all, and a wrong size said with both sizes?"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from forgeplan.diagnostics.refusal import Refusal, UsageError
from forgeplan.plan.mesh import Mesh
from forgeplan.runtime.distributed import Place, check_world, exit_code_of, place_in
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
