"""Are recomputation and compilation that would do nothing, or fail, refused, and everything else taken?"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest

from forgeplan.compiler import check
from forgeplan.compiler.checking import facts_of
from forgeplan.diagnostics.diagnostic import Diagnostic, Severity
from tests.compiler.jobs import job
from tests.compiler.test_checks import everything

MOE = {"cluster.hbm": None, "model.moe.experts": 8, "model.moe.top_k": 2}


def faults(changes: dict[str, Any]) -> list[Diagnostic]:
    return [d for d in check(job(changes)) if d.severity is Severity.ERROR]


def recompute(**options: Any) -> dict[str, Any]:
    return {"apply": {"recompute": 0, "fsdp": 0}, **{f"apply.recompute.{k}": v for k, v in options.items()}}


def compiled(**options: Any) -> dict[str, Any]:
    return {"apply": {"compile": 0, "fsdp": 0}, **{f"apply.compile.{k}": v for k, v in options.items()}}


def replayed(changes: dict[str, Any]) -> tuple[str, ...]:
    found = facts_of(job({"cluster.hbm": None, **changes})).results("replayed")
    assert isinstance(found, tuple)
    return found


def test_every_block_is_recomputed_of_every_kind() -> None:
    """Blocks of layers, with and without experts, and those of multi-token prediction: all that have attention."""
    changes = {**MOE, "model.layers": 4, "model.moe.every": 2, "model.mtp": 2}
    model = job(changes).blocks["model"]
    with_attention = dict.fromkeys(p.name.partition(".attention.")[0] for p in model.parameters() if ".wq." in p.name)
    for mode in ("full", "selective", "budget"):
        assert replayed({**changes, **recompute(mode=mode)}) == tuple(with_attention)
    assert list(with_attention) == [*(f"layers.{i}" for i in range(4)), "mtp.0.block", "mtp.1.block"]


def test_every_kth_block_is_the_last_of_k() -> None:
    assert replayed({"model.layers": 7, **recompute(mode="every", every=3)}) == ("layers.2", "layers.5")
    assert replayed({"model.layers": 3, "model.mtp": 1, **recompute(mode="every", every=2)}) == (
        "layers.1",
        "mtp.0.block",
    )
    assert replayed({"model.layers": 7, **recompute(mode="every", every=1)}) == tuple(f"layers.{i}" for i in range(7))


def test_every_counts_the_blocks_that_only_names() -> None:
    some = recompute(mode="every", every=2, only=("layers.1?", "layers.4"))
    assert replayed({"model.layers": 15, **some}) == ("layers.10", "layers.12", "layers.14")


def test_only_names_blocks() -> None:
    assert replayed(recompute(only=("layers.?",))) == tuple(f"layers.{i}" for i in range(10))
    assert replayed({"model.mtp": 1, **recompute(only=("mtp",))}) == ("mtp.0.block",)
    assert replayed(recompute(only=("layers.31", "layers.0"))) == ("layers.0", "layers.31")


def test_no_recomputation_is_for_no_block() -> None:
    assert replayed({}) == replayed(recompute(mode="none")) == ()


def test_a_budget_is_counted_in_thousandths() -> None:
    changes = recompute(mode="budget", budget=Fraction(1, 8)) | {"apply": {"recompute": 0, "compile": 0, "fsdp": 0}}
    (operation,) = (op for op in facts_of(job(changes)).results("program") if op.name == "recompute")
    assert (operation.mode, operation.budget) == ("budget", 125)


BROKEN: list[tuple[str, dict[str, Any], list[str]]] = [
    ("FP0444", recompute(only=("layer.3",)), ['"layer.3" in apply.recompute.only', "`layers.3`", "model.layers = 32"]),
    ("FP0444", recompute(only=("decoder",)), ["modules of this model: layers.*"]),
    ("FP0444", recompute(only=("layers.1", "layers.32")), ['"layers.32"']),
    ("FP0460", recompute(mode="budget"), ["add `compile`", "mode: selective, full"]),
    ("FP0460", {**recompute(mode="budget"), **compiled(backend="eager"), "apply": {"recompute": 0, "compile": 0}},
     ["compile.backend = eager", "backend: inductor, aot_eager"]),
    ("FP0461", recompute(mode="every", every=40), ["one block in 40, and of 32 blocks", "every: 32 or less"]),
    ("FP0461", recompute(mode="every", every=3, only=("layers.0", "layers.9")), ["of 2 blocks", "every: 2 or less"]),
    ("FP0461", recompute(only=()), ["names no block", "only: none"]),
    ("FP0461", recompute(only=("layers.*.mlp",)), ['"layers.*.mlp"', "blocks of this model: layers.*"]),
    ("FP0461", recompute(only=("layers", "head")), ['"head" in apply.recompute.only is the name of no block']),
    ("FP0462", {**MOE, **compiled(fullgraph=True)}, ["32 of 32 blocks must break", "fullgraph: false"]),
    ("FP0462", {**MOE, **compiled(fullgraph=True), "model.moe.every": 4, "mesh.ep": 2},
     ["8 of 32 blocks", "mesh.ep = 2"]),
    ("FP0462", {**compiled(backend="eager"), "model.window": 1024}, ["model.window = 1024", "inductor, aot_eager"]),
    ("FP0462", {**compiled(backend="eager"), "mesh.cp": 2}, ["mesh.cp = 2", "inductor, aot_eager"]),
]  # fmt: skip


@pytest.mark.parametrize(("code", "changes", "said"), BROKEN, ids=[f"{c}-{i}" for i, (c, _, _) in enumerate(BROKEN)])
def test_options_without_sense_are_refused_with_a_way_out(code: str, changes: dict[str, Any], said: list[str]) -> None:
    (found,) = faults(changes)
    assert found.code == code
    assert [text for text in said if text not in everything(found)] == []


FINE: dict[str, dict[str, Any]] = {
    "selective recomputation": recompute(mode="selective"),
    "as many as there are blocks": recompute(mode="every", every=32),
    "a number that nothing asks for": recompute(mode="full", every=40),
    "a mode that is off": recompute(mode="none", every=40),
    "a budget that the compiler keeps": {**recompute(mode="budget"), "apply": {"recompute": 0, "compile": 0}},
    "graphs that break at experts": {**MOE, **compiled()},
    "whole graphs of dense blocks": compiled(fullgraph=True),
    "the eager backend": compiled(backend="eager"),
    "the eager backend with a window on a CPU": {
        **compiled(backend="eager"), "model.window": 1024, "cluster.arch": "cpu", "cluster.hbm": None,
        "precision.compute": "fp32",
    },
    "the eager backend with ring attention": {
        **compiled(backend="eager"), "mesh.cp": 2, "apply": {"cp": 0, "compile": 0}, "apply.cp.attention": "ring",
    },
}  # fmt: skip


@pytest.mark.parametrize("changes", FINE.values(), ids=list(FINE))
def test_unusual_options_are_taken(changes: dict[str, Any]) -> None:
    assert faults(changes) == []


IDLE: list[tuple[dict[str, Any], str]] = [
    (recompute(mode="full", every=4), "apply.recompute.every = 4 has no effect: only `mode = every` reads it"),
    (recompute(budget=Fraction(1, 4)), "apply.recompute.budget = 25% has no effect: only `mode = budget` reads it"),
    (recompute(mode="none", only=("layers.1",)), 'apply.recompute.only = ["layers.1"] has no effect'),
    (
        {**compiled(), **recompute(mode="budget", budget=Fraction(1)), "apply": {"recompute": 0, "compile": 0}},
        "apply.recompute.budget = 100% has no effect",
    ),
    ({"apply": {"fp8": 0}, "apply.fp8.small": "skip", "apply.fp8.include": ("*.wq",)}, "apply.fp8.small = skip has no"),
    ({"cluster.devices_per_node": 1, "cluster.hbm": None, "apply": {"fp8": 0}, "apply.fp8.all_gather": True},
     "parameters are not sharded"),
    ({"cluster.hbm": None, "mesh.pp": 2, "batch.micro": 1, "apply": {"pp": 0}, "apply.pp.cuts": (30,),
      "apply.pp.weights.head": 2}, "apply.pp.weights.head = 2 has no effect"),
]  # fmt: skip


@pytest.mark.parametrize(("changes", "said"), IDLE)
def test_an_option_that_nothing_reads_is_named(changes: dict[str, Any], said: str) -> None:
    (found,) = (d for d in check(job(changes)) if d.code == "setting-without-effect")
    assert said in found.message


@pytest.mark.parametrize(
    "changes",
    [
        recompute(mode="every", every=4),
        {**recompute(mode="budget", budget=Fraction(1, 4)), "apply": {"recompute": 0, "compile": 0}},
        {"apply": {"fp8": 0}, "apply.fp8.small": "convert", "apply.fp8.all_gather": True},
        {"cluster.hbm": None, "mesh.pp": 2, "batch.micro": 1, "apply": {"pp": 0}, "apply.pp.weights.head": 2},
    ],
)
def test_an_option_that_is_read_is_not(changes: dict[str, Any]) -> None:
    assert [d for d in check(job(changes)) if d.code == "setting-without-effect"] == []
