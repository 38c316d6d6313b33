"""Is the page of a plan right, and does it fit?"""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion

from forgeplan.compiler import emit
from forgeplan.compiler.explain import explain, explain_path
from forgeplan.diagnostics.refusal import UsageError
from forgeplan.diagnostics.source import Sources
from forgeplan.diagnostics.span import COMMAND_LINE, NOWHERE, Span
from forgeplan.spec.provenance import Leaf, Origin
from tests.compiler.jobs import evolve, job, share, steps

SEVENTY = {
    "cluster.nodes": 8, "cluster.devices_per_node": 8, "model.layers": 80, "model.dim": 8192, "model.heads": 64,
    "model.ffn": 28_672, "mesh.dp_replicate": 2, "batch.micro": 2, "apply": {"recompute": 0},
    "schedule.warmup": share(3), "schedule.floor": Fraction(1, 10), "checkpoint.every": steps(1000),
    "eval": {"held_out": 0}, "eval.held_out.source": "web", "eval.held_out.split": Fraction(1, 100),
    "eval.held_out.every": steps(500), "eval.held_out.batches": 50,
}  # fmt: skip

UNUSUAL: dict[str, dict[str, Any]] = {
    "one device": {"cluster.devices_per_node": 1},
    "uneven shards": {"cluster.devices_per_node": 3, "batch.global": ..., "batch.accumulation": 2},
    "many ranks": {
        "cluster.nodes": 16_384,
        "cluster.devices_per_node": 8,
        "batch.global": ...,
        "batch.accumulation": 1,
    },
    "wall time alone": {"budget.tokens": None, "budget.wall": Fraction(7200), "schedule": "constant"},
    "no schedule": {"schedule": None},
    "one step": {"budget.tokens": 1},
    "no hbm": {"cluster.hbm": None},
    "tied": {"model.tie": True},
    "405B": {
        "cluster.nodes": 256,
        "model.layers": 126,
        "model.dim": 16_384,
        "model.heads": 128,
        "model.ffn": 53_248,
        "model.norm": "layer",
        "model.bias": True,
        "batch.micro": 1,
        "budget.tokens": 10**13,
    },
}


def test_the_page_of_a_large_plan(snapshot: SnapshotAssertion) -> None:
    assert explain(emit(job(SEVENTY))) == snapshot


@pytest.mark.parametrize("width", [40, 80, 120])
@pytest.mark.parametrize("changes", [SEVENTY, *UNUSUAL.values()], ids=["70B", *UNUSUAL])
def test_no_line_is_wider_than_the_page(changes: dict[str, Any], width: int) -> None:
    for line in explain(emit(job(changes)), width).splitlines():
        assert len(line) <= max(width, 80)


@pytest.mark.parametrize("changes", [SEVENTY, *UNUSUAL.values()], ids=["70B", *UNUSUAL])
def test_the_exact_numbers_of_the_plan_are_on_the_page(changes: dict[str, Any]) -> None:
    plan = emit(job(changes))
    page = explain(plan, 100)
    wanted = [plan.estimates.num_parameters, plan.estimates.tokens_per_step, *([plan.steps] if plan.steps else [])]
    for ranks in plan.rank_classes:
        wanted += [ranks.parameter_bytes, ranks.gradient_bytes, ranks.optimizer_bytes, ranks.state_bytes]
    shown = {int(number.replace(",", "")) for number in re.findall(r"\d[\d,]*", page)}
    assert set(wanted) <= shown


def test_every_step_of_the_program_is_told_in_order() -> None:
    page = explain(emit(job(SEVENTY)))
    places = [page.index(f"  {i}  {name}") for i, name in enumerate(("build", "recompute", "fsdp", "materialise"), 1)]
    assert places == sorted(places)


def test_every_layer_that_set_a_value_is_told_strongest_first() -> None:
    """Case C015."""
    sources = Sources()
    sources.add("base.forge", "forge 1\nplan base { optimizer = adamw { lr = 3e-4 } }\n")
    layers = (
        Origin(Span(COMMAND_LINE, 0, 0), "command line", "5e-5"),
        Origin(Span("base.forge", 40, 44), "profile smoke", "1e-4"),
        Origin(Span("base.forge", 43, 47), "plan base", "3e-4"),
        Origin(NOWHERE, "schema default", "1e-3"),
    )
    made = job()
    changed = evolve(made, leaves={**made.leaves, "optimizer.lr": Leaf(Fraction(5, 100_000), layers)})
    text = explain_path(changed, "optimizer.lr", sources)
    lines = text.splitlines()
    assert lines[0] == "optimizer.lr = 5e-5"
    assert "peak learning rate" in lines[1]
    assert [line.split()[0] for line in lines if "5e-5" in line][-1] == "→"
    assert "base.forge:2:36" in text
    order = [text.index(layer) for layer in ("command line", "profile smoke", "plan base", "schema default")]
    assert order == sorted(order)


def test_a_derived_value_says_what_it_is_computed_from() -> None:
    text = explain_path(job(), "memory.states", Sources())
    assert text.startswith("memory.states = ")
    assert "cannot be assigned" in text


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("optimizer.rl", "did you mean `optimizer.lr`?"),
        ("batch", "its values are batch.accumulation"),
        ("x.y", "has no `x.y`"),
    ],
)
def test_a_path_that_is_no_value_is_answered_with_what_is_there(path: str, said: str) -> None:
    with pytest.raises(UsageError, match=re.escape(said)):
        explain_path(job(), path, Sources())
