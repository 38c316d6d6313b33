"""Does `plan.hash` change exactly when the meaning does?"""

from __future__ import annotations

import subprocess
import sys
from fractions import Fraction
from typing import Any

import pytest

from forgeplan.compiler import emit
from forgeplan.spec.quantity import SEQUENCES, Quantity
from tests.compiler.jobs import job, share

REFERENCE = emit(job()).meaning

SAME: dict[str, dict[str, Any]] = {
    "a transform that is always there is named": {"apply": {"fsdp": 0}},
    "auto is written out": {"mesh.dp_shard": 4},
    "the batch is counted in sequences": {"batch.global": Quantity(512, SEQUENCES)},
    "accumulation instead of the global batch": {"batch.global": ..., "batch.accumulation": 32},
}
OTHER: dict[str, dict[str, Any]] = {
    "seed": {"seed": 1},
    "rate": {"optimizer.lr": Fraction(3001, 10_000_000)},
    "layout": {"mesh.dp_replicate": 2},
    "recompute": {"apply": {"recompute": 0}},
    "precision": {"precision.moments": "bf16"},
    "warm-up": {"schedule.warmup": share(1)},
    "source path": {"sources.web.path": "other/*.npy"},
    "source name": {"sources": {"wib": "tokens"}, "sources.wib.path": "web/*.npy"},
}


@pytest.mark.parametrize("changes", SAME.values(), ids=SAME)
def test_another_spelling_of_the_same_plan_has_the_same_hash(changes: dict[str, Any]) -> None:
    assert emit(job(changes)).meaning == REFERENCE


@pytest.mark.parametrize("changes", OTHER.values(), ids=OTHER)
def test_another_meaning_has_another_hash(changes: dict[str, Any]) -> None:
    assert emit(job(changes)).meaning != REFERENCE


def test_names_output_paths_and_tools_are_no_meaning() -> None:
    assert emit(job(name="other"), tools={"python": "4.0"}, created_by="test").meaning == REFERENCE
    one = emit(job({"checkpoint.every": share(10), "checkpoint.path": "a"}))
    two = emit(job({"checkpoint.every": share(10), "checkpoint.path": "b"}))
    assert one.meaning == two.meaning
    assert one.file != two.file


def test_the_hash_does_not_depend_on_the_hash_seed() -> None:
    code = "from tests.compiler.jobs import job; from forgeplan.compiler import emit; print(emit(job()).meaning)"
    for seed in ("0", "1"):
        found = subprocess.run(
            [sys.executable, "-c", code], env={"PYTHONHASHSEED": seed}, capture_output=True, text=True, check=True
        )
        assert found.stdout.strip() == REFERENCE
