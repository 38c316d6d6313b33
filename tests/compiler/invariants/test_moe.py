"""Are layers, experts and groups that do not fit one another refused with their numbers, and all others taken?"""

from __future__ import annotations

import time
from fractions import Fraction
from typing import Any

import pytest

from forgeplan.compiler import check, emit
from forgeplan.diagnostics.diagnostic import Diagnostic, Severity
from tests.compiler.jobs import job
from tests.compiler.test_checks import everything

SMALL = {
    "model.layers": 4, "model.dim": 64, "model.heads": 4, "model.kv_heads": 2, "model.ffn": 128, "model.vocab": 256,
}  # fmt: skip


def moe(experts: int, top_k: int, **more: Any) -> dict[str, Any]:
    return SMALL | {f"model.moe.{k}": v for k, v in {"experts": experts, "top_k": top_k, **more}.items()}


def errors(changes: dict[str, Any]) -> list[Diagnostic]:
    return [d for d in check(job(changes)) if d.severity is Severity.ERROR]


C030 = [
    (moe(6, 2, groups=4), ["6 % 4 = 2", "model.moe.groups: 1, 2, 3", "model.moe.experts: 8"]),
    (moe(8, 2, groups=8), ["8 experts in 8 groups are one a group", "groups: 1, 2, 4", "experts: 16"]),
    (moe(8, 2, groups=4, group_limit=5), ["5 of 4 groups", "group_limit: 4 or less"]),
    (moe(16, 6, groups=4, group_limit=1), ["6 experts", "1 · 4 = 4", "group_limit: 2 to 4", "top_k: 4 or less"]),
]


@pytest.mark.parametrize(("changes", "said"), C030)
def test_groups_that_the_first_batch_would_trip_over_are_refused(changes: dict[str, Any], said: list[str]) -> None:
    """Case C030."""
    (found,) = errors(changes)
    assert found.code == "FP0510"
    assert [text for text in said if text not in everything(found)] == []


def test_every_number_of_a_relation_between_groups_is_shown() -> None:
    (found,) = errors(moe(16, 6, groups=4, group_limit=1))
    assert [label.text.partition(" = ")[0].rpartition(".")[2] for label in found.labels] == [
        "group_limit", "top_k", "groups", "experts",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (moe(8, 2, first_dense=4), ["i ≥ 4 and (i + 1) % 1 = 0", "first_dense: 3 or less", "layers: 5 or more"]),
        (moe(8, 2, every=5), ["i ≥ 0 and (i + 1) % 5 = 0", "every: 4", "layers: 5 or more"]),
        (moe(8, 2, every=3, first_dense=3), ["first_dense: 2 or less", "every: 4", "layers: 6 or more"]),
    ],
)
def test_experts_that_are_in_no_layer_are_refused(changes: dict[str, Any], said: list[str]) -> None:
    (found,) = errors(changes)
    assert found.code == "FP0508"
    assert [text for text in said if text not in everything(found)] == []


def test_more_experts_for_a_token_than_there_are_is_one_fault() -> None:
    """It would break the relation of the groups too."""
    (found,) = errors(moe(4, 8))
    assert found.code == "FP0509"
    assert "8 of 4 experts" in found.message
    assert "legal value of model.moe.top_k: 4 or less" in found.help
    assert [d.code for d in errors(moe(8, 9, groups=4, group_limit=2))] == ["FP0509"]


@pytest.mark.parametrize(
    "changes",
    [
        moe(1, 1),
        moe(4, 4),
        moe(64, 16, groups=8, group_limit=2),
        moe(256, 8, groups=8, group_limit=4, shared=1, router="sigmoid_topk"),
        moe(8, 2, every=4),
        moe(8, 2, first_dense=3),
        moe(6, 3, groups=2, group_limit=1),
        moe(8, 2, capacity=Fraction(1, 2), balance=Fraction(1, 100), z=Fraction(1, 1000)),
        moe(8, 2) | {"model.mtp": 1, "model.tie": True},
    ],
)
def test_what_can_route_is_taken(changes: dict[str, Any]) -> None:
    assert errors(changes) == []
    assert emit(job(changes)).file


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"model.moe.ffn": 1412}, ["1412 is no multiple of 8", "1408, 1416"]),
        ({"model.moe.ffn": 1410, "precision.compute": "fp32"}, ["no multiple of 4", "1408, 1412"]),
        ({"model.dim": 68, "model.head_dim": 16}, ["model.dim = 68", "64, 72"]),
    ],
)
def test_widths_that_take_the_loop_are_a_warning(changes: dict[str, Any], said: list[str]) -> None:
    (found,) = check(job(moe(8, 2) | changes))
    assert (found.code, found.severity) == ("slow-experts", Severity.WARNING)
    assert [text for text in said if text not in everything(found)] == []


@pytest.mark.parametrize(
    "changes",
    [
        {"model.moe.ffn": 1412, "precision.compute": "fp32"},
        {"model.moe.ffn": 1410, "precision.compute": "fp32", "cluster.arch": "cpu", "cluster.hbm": None},
    ],
)
def test_widths_that_cost_nothing_are_no_warning(changes: dict[str, Any]) -> None:
    assert check(job(moe(8, 2) | changes)) == []


NEVER = {"model.moe.router.rate": Fraction(0), "model.moe.router.rate_schedule": "cosine"}


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (SMALL | {"loss.mtp": Fraction(1, 10)}, ["loss.mtp = 0.1", "no modules", "model.mtp = 0"]),
        (SMALL | {"model.mtp": 32, "batch.length": 32}, ["model.mtp = 32", "batch.length = 32", "31 modules at most"]),
        (moe(8, 2, groups=4), ["model.moe.groups = 4", "every group", "model.moe.group_limit = 4"]),
        (moe(8, 2, groups=4, group_limit=4), ["model.moe.group_limit = 4", "every group", "model.moe.groups = 4"]),
        (moe(8, 2, capacity=Fraction(4)), ["model.moe.capacity = 4", "4 times its even share", "model.moe.top_k = 2"]),
        (moe(4, 4, balance=Fraction(1, 100)), ["model.moe.balance = 0.01", "all experts", "model.moe.top_k = 4"]),
        (moe(8, 2, router="sigmoid_topk") | NEVER, ["rate_schedule = cosine", "never changes"]),
    ],
)
def test_what_nothing_reads_is_a_warning(changes: dict[str, Any], said: list[str]) -> None:
    (found,) = check(job(changes))
    assert (found.code, found.severity) == ("setting-without-effect", Severity.WARNING)
    assert [text for text in said if text not in everything(found)] == []


@pytest.mark.parametrize(
    "changes",
    [
        moe(8, 2, groups=4, group_limit=2),
        moe(8, 2, capacity=Fraction(399, 100), balance=Fraction(1, 100)),
        moe(8, 2) | {"loss.mtp": Fraction(1, 10), "model.mtp": 1},
        SMALL | {"model.mtp": 31, "batch.length": 32},
        moe(8, 2),
    ],
)
def test_what_is_read_is_no_warning(changes: dict[str, Any]) -> None:
    assert check(job(changes)) == []


@pytest.mark.parametrize("name", ["experts", "top_k", "ffn", "every", "first_dense", "shared", "groups", "group_limit"])
def test_a_number_without_measure_is_answered_at_once(name: str) -> None:
    start = time.perf_counter()
    check(job(moe(8, 2) | {f"model.moe.{name}": 10**300 + 2}))
    assert time.perf_counter() - start < 3
