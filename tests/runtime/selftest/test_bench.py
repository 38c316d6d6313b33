"""Does a bench notice ranks that disagree or fail, and share references no further than plans are alike?"""

from __future__ import annotations

import pytest
import torch
from attrs import evolve
from torch import distributed

from forgeplan.plan.mesh import Mesh
from forgeplan.runtime.selftest import bench as bench_module
from forgeplan.runtime.selftest.bench import Bench
from forgeplan.runtime.selftest.executed import Common
from forgeplan.runtime.selftest.pool import RankFailed
from forgeplan.runtime.selftest.reference import Trained
from forgeplan.runtime.selftest.row import Row
from forgeplan.runtime.selftest.run import Room, run_row
from tests.runtime.tiny import moe

PLENTY = Room(8, "")
FSDP2 = Mesh(dp_shard=2)


def report_another_loss_on_one_rank(plan: object, packed: bool, device_type: str) -> object:
    """As `train_and_report` answers, and rank 1 disagrees."""
    rank = distributed.get_rank()
    trained = Trained([1.0 + rank], [1.0], [1.0], {}, {}, {})
    return Common.of(trained) if rank else trained


def begin_with_another_norm_on_one_rank(plan: object, packed: bool, device_type: str) -> object:
    rank = distributed.get_rank()
    trained = Trained([1.0], [1.0], [1.0], {}, {"norm.weight": torch.ones(3) + rank, "head.weight": torch.ones(2)}, {})
    return Common.of(trained) if rank else trained


def test_ranks_that_report_another_loss_have_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench_module, "train_and_report", report_another_loss_on_one_rank)
    with Bench() as bench:
        result = run_row(Row("fsdp 2", FSDP2), bench, PLENTY)
    assert (result.status, result.deviation) == ("failed", None)
    assert result.reason == "ranks 0 and 1 report other losses, norms or rates"
    assert "[2.0]" in result.details


def test_ranks_that_begin_with_other_values_have_failed_and_the_tensor_is_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(bench_module, "train_and_report", begin_with_another_norm_on_one_rank)
    with Bench() as bench:
        result = run_row(Row("fsdp 2", FSDP2), bench, PLENTY)
    assert (result.status, result.reason) == ("failed", "ranks 0 and 1 begin with other values of norm.weight")


def test_a_row_without_ranks_fails_like_one_with(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*arguments: object) -> None:
        raise ZeroDivisionError("on purpose")

    monkeypatch.setattr(bench_module, "train_plan", fail)
    with Bench() as bench, pytest.raises(RankFailed, match="rank 0: ZeroDivisionError: on purpose"):
        bench.deviations(Row("alone").plan(), packed=False)
    result = run_row(Row("alone"), bench, PLENTY)
    assert (result.status, result.is_bad) == ("failed", True)


def test_a_row_that_trains_something_else_differs_and_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    with Bench() as bench:
        wanted = bench.reference(Row("alone").plan(), packed=False)
        wanted.gradients["head.weight"] += 1e-6
        result = run_row(Row("alone"), bench, PLENTY)
    assert result.status == "differs"
    assert result.deviation is not None
    assert result.deviation.what == "gradient of head.weight"


def test_a_row_with_more_ranks_than_there_is_room_for_is_not_run() -> None:
    with Bench() as bench:
        result = run_row(Row("fsdp 2", FSDP2), bench, Room(1, "each takes a device, and there is 1"))
        assert run_row(Row("alone"), bench, Room(0, "")).status == "same"
    assert (result.status, result.is_bad) == ("not_run", False)
    assert result.reason == "2 ranks: each takes a device, and there is 1"


def test_plans_that_train_the_same_share_a_reference_and_others_do_not() -> None:
    with Bench() as bench:
        one = bench.reference(Row("fsdp 2", FSDP2).plan(), packed=False)
        assert bench.reference(Row("four microbatches", accumulation=4).plan(), packed=False) is one
        others = [Row("z", z=Row("").z + 1), Row("fp32", dtype="fp32"), Row("norms", model={"qk_norm": True})]
        others += [Row("experts", model={"moe": moe()}), Row("by twos", model={"moe": moe()}, accumulation=4)]
        found = [one, bench.reference(Row("packed").plan(), packed=True)]
        found += [bench.reference(row.plan(), packed=False) for row in others]
    assert len({id(trained) for trained in found}) == len(found)


def test_a_reference_on_one_process_is_independent_of_the_layout_it_is_asked_for() -> None:
    """Of experts too, whose microbatch is that of the layout: two ranks of four sequences are two microbatches."""
    plan = Row("experts", FSDP2, model={"moe": moe()}).plan()
    alone = Row("experts", accumulation=2, model={"moe": moe()}).plan()
    with Bench() as bench:
        assert bench.reference(plan, packed=False) is bench.reference(alone, packed=False)
        shorter = bench.reference(evolve(alone, steps=1), packed=False)
    assert len(shorter.losses) == 1
    assert all(tensor.dtype == torch.float64 for tensor in shorter.weights.values())
