"""Does a plan made of a TOML file train what the file says: the same model, mesh, batch and schedule?"""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest
from attrs import frozen

from forgeplan.importer.reading import flatten
from forgeplan.importer.rules import Options
from forgeplan.importing import Checked, import_plan
from forgeplan.spec.job import Job
from forgeplan.spec.schedule.shapes import rate_factor
from tests.importer.shapes import count

CONFIGS = Path(__file__).parent / "configs"
LLAMA_8B = 8_030_261_248


@frozen
class Expected:
    """What a file says, as numbers."""

    params: int
    mesh: dict[str, int]
    """Degrees above 1."""
    devices: tuple[int, int]
    """Machines, and devices of one."""
    sequences: int
    """Of one step, over all ranks."""
    length: int
    steps: int
    rates: dict[int, float]
    """Update, counted from 1 → learning rate."""
    program: tuple[str, ...]
    """The transforms that the file asks for, in order."""


EXPECTED = {
    "torchtitan/llama3_debug": Expected(
        count(256, 6, 16, 16, 768, 2048),
        {"dp_shard": 8},
        (1, 8),
        64,
        2048,
        10,
        {1: 4e-4, 2: 8e-4, 6: 4e-4, 10: 0.0},
        ("recompute",),
    ),
    "torchtitan/llama3_8b_float8": Expected(
        LLAMA_8B, {"dp_shard": 8}, (1, 8), 8, 8192, 1000, {100: 1.5e-4, 200: 3e-4, 600: 1.5e-4, 1000: 0.0},
        ("fp8", "recompute", "compile"),
    ),
    "torchtitan/llama3_70b_tp8": Expected(
        70_553_706_496, {"tp": 8, "dp_shard": 8}, (8, 8), 512, 8192, 20_000,
        {100: 7.5e-5, 200: 1.5e-4, 18_000: 1.5e-4, 18_500: 1.5e-4 * (0.1 + 0.9 * 0.5), 20_000: 1.5e-5},
        ("recompute", "compile"),
    ),
    "torchtitan/llama3_405b_4d": Expected(
        405_853_388_800, {"pp": 8, "dp_shard": 8, "tp": 8}, (64, 8), 256, 8192, 3000,
        {600: 8e-5, 1800: 4e-5, 3000: 0.0}, ("pp", "fp8", "recompute", "compile", "fsdp"),
    ),
    "torchtitan/llama3_8b_cp": Expected(
        LLAMA_8B, {"dp_replicate": 2, "cp": 8}, (2, 8), 2, 131_072, 2000,
        {100: 3e-5, 1050: 3e-5 * 0.55, 2000: 3e-6}, ("cp", "recompute"),
    ),
    "torchtitan/qwen3_30b_ep": Expected(
        30_532_122_624, {"dp_replicate": 2, "dp_shard": 16, "ep": 8}, (4, 8), 128, 4096, 1000,
        {200: 2.2e-4, 600: 2.2e-4 * 0.55, 1000: 2.2e-5}, ("recompute",),
    ),
    "kempnerforge/dense_7b_fsdp": Expected(
        count(4096, 32, 32, 8, 14_336, 128_256), {"dp_shard": 32}, (4, 8), 256, 4096, 5000,
        {250: 1.5e-4, 500: 3e-4, 2750: 3e-4 * 0.55, 5000: 3e-5}, ("recompute", "compile"),
    ),
    "kempnerforge/dense_70b_tp4_pp4": Expected(
        70_553_706_496, {"pp": 4, "dp_shard": 2, "tp": 4}, (4, 8), 32, 4096, 2000,
        {100: 1.5e-4, 1600: 1.5e-4, 1800: 7.5e-5, 2000: 0.0}, ("pp", "recompute", "fsdp"),
    ),
    "kempnerforge/moe_ep_tp": Expected(
        count(2048, 24, 16, 4, 7168, 128_256, experts=8), {"dp_shard": 8, "tp": 4, "ep": 2}, (4, 8), 48, 4096, 200,
        {20: 3e-4, 110: 3e-4 * 0.55, 200: 3e-5}, ("recompute",),
    ),
    "kempnerforge/moe_sigmoid_shared": Expected(
        count(512, 8, 8, 4, 1408, 32_000, tied=True, qk_norm=True, experts=16, shared=1, every=2),
        {"dp_shard": 8}, (1, 8), 256, 1024, 500, {25: 5e-4, 50: 1e-3, 500: 1e-3}, (),
    ),
    "kempnerforge/dense_7b_fp8": Expected(
        LLAMA_8B, {"dp_replicate": 2, "dp_shard": 8}, (2, 8), 128, 8192, 1000, {100: 3e-4, 550: 1.5e-4, 1000: 0.0},
        ("fp8", "recompute", "compile"),
    ),
    "kempnerforge/dense_cp": Expected(
        count(2048, 16, 32, 8, 8192, 50_257, gated=False, layer_norm=True), {"dp_shard": 2, "cp": 4}, (1, 8), 16,
        32_768, 1000, {1: 2e-4, 1000: 2e-4}, (),
    ),
}  # fmt: skip


def imported(name: str, **options: Any) -> Checked:
    path = CONFIGS / f"{name}.toml"
    return import_plan(path.read_text(encoding="utf-8"), path.name, Options(**options))


def job_of(found: Checked) -> Job:
    assert found.analysis is not None
    assert [error.message for error in found.analysis.errors] == []
    return found.analysis.jobs[0]


@pytest.mark.parametrize("name", EXPECTED)
def test_a_file_becomes_a_plan_that_trains_the_same(name: str) -> None:
    found, expected = imported(name), EXPECTED[name]
    plan = job_of(found).plan
    assert plan is not None
    degrees = {axis: getattr(plan.mesh, axis) for axis in ("pp", "dp_replicate", "dp_shard", "cp", "tp", "ep")}
    sequences = plan.batch.accumulation * plan.batch.micro * plan.mesh.dp_replicate * plan.mesh.dp_shard
    assert sum(parameter.numel for parameter in plan.model.parameters()) == expected.params
    assert {axis: degree for axis, degree in degrees.items() if degree > 1} == expected.mesh
    assert (plan.cluster.nodes, plan.cluster.devices_per_node) == expected.devices
    assert (sequences, plan.batch.length, plan.budget.steps) == (expected.sequences, expected.length, expected.steps)
    rates = {
        update: float(plan.optimizer.lr)
        * rate_factor(plan.schedule, update, expected.steps, sequences * expected.length)
        for update in expected.rates
    }
    assert rates == pytest.approx(expected.rates)
    assert tuple(operation.tag for operation in plan.apply) == expected.program
    assert found.facts == {
        "params": expected.params,
        "devices": expected.devices[0] * expected.devices[1],
        "tokens_per_step": expected.sequences * expected.length,
    }


@pytest.mark.parametrize("path", sorted(CONFIGS.glob("*/*.toml")), ids=lambda path: path.stem)
def test_every_key_of_a_file_is_in_the_report_once_and_in_its_order(path: Path) -> None:
    found = imported(f"{path.parent.name}/{path.stem}")
    keys = [key for key, _ in flatten(tomllib.loads(path.read_text(encoding="utf-8")))]
    assert [row.key for row in found.imported.report.rows] == keys
    assert all(row.became or row.why for row in found.imported.report.rows)
