"""Does FP0901 count what a rank needs under every axis, and name a degree that is enough?"""

from __future__ import annotations

import re
from typing import Any

import pytest

from forgeplan.compiler import check
from forgeplan.diagnostics.diagnostic import Diagnostic
from tests.compiler.jobs import GiB, job

BATCH = {"batch.global": ..., "batch.accumulation": 8, "batch.micro": 1}
LLAMA_70B = {"model.layers": 80, "model.dim": 8192, "model.heads": 64, "model.ffn": 28_672,
             "cluster.devices_per_node": 8, **BATCH}  # fmt: skip
MIXTRAL = {"model.vocab": 32_000, "model.moe.experts": 8, "model.moe.top_k": 2, "cluster.devices_per_node": 8,
           **BATCH}  # fmt: skip


def fault(changes: dict[str, Any]) -> Diagnostic | None:
    return next((d for d in check(job(changes)) if d.code == "FP0901"), None)


def degree_that_fits(found: Diagnostic) -> int:
    (line,) = (line for line in found.help if line.startswith("they fit"))
    return int(line.rpartition(" ")[2].replace(",", ""))


@pytest.mark.parametrize(
    "changes",
    [
        {**LLAMA_70B, "mesh.tp": 4},
        {**LLAMA_70B, "mesh.tp": 2, "mesh.cp": 2},
        {**MIXTRAL, "mesh.tp": 2, "mesh.ep": 8, "cluster.hbm": 60 * GiB},
        {**MIXTRAL, "mesh.ep": 4, "cluster.hbm": 60 * GiB},
    ],
    ids=["tp", "tp and cp", "tp and ep", "ep"],
)
def test_the_degree_it_names_fits_and_a_smaller_one_does_not(changes: dict[str, Any]) -> None:
    found = fault(changes)
    assert found is not None
    degree = degree_that_fits(found)
    others = changes.get("mesh.tp", 1) * changes.get("mesh.cp", 1)
    smaller = degree - max(1, changes.get("mesh.ep", 1) // others)

    def on(shard: int) -> dict[str, Any]:
        return changes | {"cluster.devices_per_node": shard * others, "mesh.dp_shard": shard}

    assert fault(on(degree)) is None
    assert fault(on(smaller)) is not None


def test_a_pipeline_needs_its_gradients_whole_and_its_stages_gathered() -> None:
    """A half of Llama 3 70B, with either embedding or head, on 4 ranks: parameters and moments are a quarter of it,
    gradients in fp32 and gathered bf16 parameters all of it."""
    found = fault({**LLAMA_70B, "mesh.pp": 2})
    assert found is not None
    half = (70_553_706_496 + 8192) // 2
    bytes_needed = half * (3 + 4 + 2) / GiB
    assert re.search(rf"a rank needs {bytes_needed:.1f} GiB", found.message)
    assert "all its units, gathered" in " ".join(found.notes)
    assert "they would not fit with any mesh.dp_shard up to 131,072 either" in found.help


def test_offloaded_states_need_no_room_on_the_device() -> None:
    offload = {"apply": {"fsdp": 0}, "apply.fsdp.offload": True}
    assert fault(LLAMA_70B) is not None
    assert fault({**LLAMA_70B, **offload}) is None
    found = fault({**LLAMA_70B, **offload, "cluster.hbm": GiB})
    assert found is not None
    assert "its states being offloaded" in found.message
    assert "gradients" not in " ".join(found.notes)


@pytest.mark.parametrize("apply", [{}, {"apply": {"recompute": 0}}, {"apply": {"fsdp": 0}}])
def test_host_memory_is_named_where_it_would_do_whether_apply_names_fsdp_or_not(apply: dict[str, Any]) -> None:
    found = fault({**MIXTRAL, "cluster.hbm": 60 * GiB, **apply})
    assert found is not None
    assert any("apply" in line and "offload" in line for line in found.help)
    assert fault({**MIXTRAL, "cluster.hbm": 60 * GiB, "apply": {"fsdp": 0}, "apply.fsdp.offload": True}) is None


def test_devices_are_named_where_there_are_too_few_for_the_degree_that_fits() -> None:
    few, enough = (
        fault({**MIXTRAL, "cluster.hbm": 60 * GiB}),
        fault({**LLAMA_70B, "mesh.dp_replicate": 2, "cluster.hbm": 200 * GiB}),
    )
    assert few is not None
    assert "they fit on 16 devices with mesh.dp_shard = 16" in few.help
    assert enough is not None
    assert "they fit on" not in " ".join(enough.help)
