"""Are pipelines that torch would refuse, or run wrongly, refused with their numbers, and all others taken?"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest

from forgeplan.compiler import check
from forgeplan.compiler.checking import facts_of
from forgeplan.compiler.invariants.pipeline import fits_microbatches
from forgeplan.diagnostics.diagnostic import Diagnostic, Severity
from forgeplan.spec.operation.pp import SCHEDULES
from tests.compiler.jobs import job, tokens
from tests.compiler.test_checks import everything
from tests.plan.pipeline_order import order


def piped(pp: int, **options: Any) -> dict[str, Any]:
    """A pipeline with a device for each rank of it, and a microbatch of one sequence."""
    return {
        "cluster.devices_per_node": pp,
        "cluster.hbm": None,
        "mesh.pp": pp,
        "apply": {"pp": 0, "fsdp": 0},
        "batch.micro": 1,
        **{f"apply.pp.{name}": value for name, value in options.items()},
    }


def errors(changes: dict[str, Any]) -> list[Diagnostic]:
    return [d for d in check(job(changes)) if d.severity is Severity.ERROR]


def steps_of(microbatches: int) -> dict[str, Any]:
    return {"batch.global": tokens(4096 * microbatches)}


@pytest.mark.parametrize(("number", "neighbours"), [(9, (8, 10)), (11, (10, 12))])
def test_numbers_of_microbatches_that_do_not_make_equal_rounds_are_refused(
    number: int, neighbours: tuple[int, int]
) -> None:
    """Case C021: interleaved on 4 ranks, 2 stages each."""
    changes = {**piped(4, schedule="interleaved", stages_per_rank=2), **steps_of(number)}
    (found,) = errors(changes)
    below, above = (f"{4096 * n:_} tokens" for n in neighbours)
    assert found.code == "FP0432"
    assert f"{number} // 4 = 2 rounds" in found.message
    assert f"legal values of batch.global: {below}, {above}" in found.help
    (found,) = errors({**changes, "batch.global": ..., "batch.accumulation": number})
    assert f"legal values of batch.accumulation: {neighbours[0]}, {neighbours[1]}" in found.help


@pytest.mark.parametrize("number", [3, 8, 10, 12])
def test_numbers_that_make_equal_rounds_are_taken(number: int) -> None:
    """Case C021, and fewer microbatches than ranks."""
    assert errors({**piped(4, schedule="interleaved", stages_per_rank=2), **steps_of(number)}) == []


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("pp", [2, 3, 4])
def test_the_numbers_of_microbatches_are_those_that_torch_takes(schedule: str, pp: int) -> None:
    for number in range(1, 14):
        try:
            order(schedule, pp, 1 if schedule in ("gpipe", "one_f_one_b") else 2, number)
            taken = schedule != "one_f_one_b" or number >= pp  # torch asks for as many as there are stages
        except ValueError:
            taken = False
        assert fits_microbatches(schedule, pp, number) == taken, number


def test_torch_asks_for_as_many_microbatches_as_1f1b_has_stages() -> None:
    from torch.distributed.pipelining.schedules import Schedule1F1B

    from tests.plan.pipeline_order import NumbersOnly

    Schedule1F1B(NumbersOnly(0, 4, 4), 4, loss_fn=len)
    with pytest.raises(ValueError, match="3"):
        Schedule1F1B(NumbersOnly(0, 4, 4), 3, loss_fn=len)


BROKEN: list[tuple[str, dict[str, Any], list[str]]] = [
    ("FP0429", piped(2, schedule="zbv", stages_per_rank=1), ["2 stages on each rank", "stages_per_rank: 2",
                                                            "looped_bfs, interleaved, zero_bubble"]),
    ("FP0429", piped(2, stages_per_rank=2), ["one_f_one_b works with 1 stage", "stages_per_rank: 1"]),
    ("FP0430", {**piped(4), "model.layers": 1}, ["3 ÷ 4 = 0 remainder 3", "0, 1, 1, -1", "mesh.pp: 1, 2"]),
    ("FP0430", {**piped(2, **{"weights.head": 9}), "model.layers": 4}, ["14 ÷ 2 = 7", "less than the 9",
                                                                       "weights.head: 0, 1, 2, 3, 4, 5"]),
    ("FP0430", {**piped(4, schedule="interleaved", stages_per_rank=3), "model.layers": 8},
     ["10 ÷ 12", "stages_per_rank: 1, 2"]),
    ("FP0432", {"cluster.devices_per_node": 4, "cluster.hbm": None, "mesh.pp": 4, "batch.micro": 4,
                "batch.global": tokens(16_384)},
     ["1 microbatch:", "needs at least 4", "65_536 tokens", "batch.micro: 1 sequence", "pp { schedule = gpipe }"]),
    ("FP0432", {**piped(2, schedule="dualpipe_v", stages_per_rank=2), **steps_of(3)}, ["2 · 2 = 4", "16_384 tokens"]),
    ("FP0433", {**piped(2, schedule="zbv", stages_per_rank=2), "model.softcap": Fraction(50)},
     ["FlexAttention", "model.softcap: none", "interleaved"]),
    ("FP0433", {**piped(2, schedule="zbv", stages_per_rank=2), "model.attention": "flex"}, ["model.attention: auto"]),
    ("FP0433", {**piped(2, schedule="zero_bubble", stages_per_rank=1), "apply": {"pp": 0, "compile": 0, "fsdp": 0}},
     ["compile", "or drop `compile`"]),
    ("FP0433", {**piped(2, schedule="zero_bubble", stages_per_rank=1), "apply": {"pp": 0, "recompute": 0, "fsdp": 0},
                "apply.recompute.mode": "selective"}, ["recompute.mode = selective", "recompute.mode: full"]),
    ("FP0433", {**piped(2, schedule="zbv", stages_per_rank=2), "cluster.devices_per_node": 4,
                "apply.fsdp.reshard": "always"}, ["without an error", "fsdp.reshard: never"]),
]  # fmt: skip


@pytest.mark.parametrize(("code", "changes", "said"), BROKEN, ids=[f"{c}-{i}" for i, (c, _, _) in enumerate(BROKEN)])
def test_a_pipeline_that_cannot_run_is_refused_with_a_way_out(
    code: str, changes: dict[str, Any], said: list[str]
) -> None:
    (found,) = errors(changes)
    assert found.code == code
    assert [text for text in said if text not in everything(found)] == []


@pytest.mark.parametrize(
    ("cuts", "said"),
    [
        ((4, 3, 5), "gives layer 3 to two stages"),
        ((5, 2, 6), "gives layers 2 to 4 to two stages"),
        ((3, 3, 5), "has 3 twice: the stage between these two has no layers"),
        ((1, 2, 9), "cuts before layer 9, which does not exist"),
        ((1, 2), "makes 3 stages, and mesh.pp · stages_per_rank = 4 stages need 3 cuts"),
    ],
)
def test_cuts_that_do_not_give_each_layer_to_one_stage_are_refused(cuts: tuple[int, ...], said: str) -> None:
    """Case C026. That a layer is missing cannot be said: each cut ends one stage and begins the next."""
    (found,) = errors({**piped(4, cuts=cuts), "model.layers": 6})
    assert found.code == "FP0431"
    assert said in found.message
    assert "legal values of apply.pp.cuts: [1, 3, 5], none" in found.help
    assert any(note.startswith("stages between these cuts: ") for note in found.notes)


def test_an_inner_stage_without_layers_is_a_cut_too_many() -> None:
    (found,) = errors({**piped(2, cuts=(16, 16))})
    assert "legal values of apply.pp.cuts: [16], none" in found.help


FINE: dict[str, dict[str, Any]] = {
    "uneven stages (row 17)": {**piped(4), "model.layers": 61},
    "embedding and head alone (row 18)": {**piped(4), "model.layers": 2},
    "lopsided cuts (row 19)": piped(2, cuts=(30,)),
    "a cut at each end": {**piped(4, cuts=(0, 1, 2)), "model.layers": 2},
    "gpipe with one microbatch (row 20)": {**piped(4, schedule="gpipe"), **steps_of(1)},
    "interleaved with one stage a rank (row 21)": piped(2, schedule="interleaved", stages_per_rank=1),
    "a single rank drops what pp says": {**piped(1, schedule="zbv", stages_per_rank=1, cuts=(9,)), **steps_of(1)},
    "no word of pp in apply": {"cluster.hbm": None, "mesh.pp": 2, "batch.micro": 1},
    "packed documents on a CPU": {
        **piped(2, schedule="zbv", stages_per_rank=2), "cluster.arch": "cpu", "precision.compute": "fp32",
        "batch.pack": True, "tokenizer": "byte",
    },
    "a split backward with full recomputation": {
        **piped(2, schedule="zero_bubble", stages_per_rank=1), "apply": {"pp": 0, "recompute": 0, "fsdp": 0},
    },
    "a split backward with parameters that stay": {
        **piped(2, schedule="zbv", stages_per_rank=2), "cluster.devices_per_node": 4, "apply.fsdp.reshard": 1,
    },
    "a split backward with fsdp over one rank": {
        **piped(2, schedule="zbv", stages_per_rank=2), "apply.fsdp.reshard": "always",
    },
}  # fmt: skip


@pytest.mark.parametrize("changes", FINE.values(), ids=list(FINE))
def test_unusual_pipelines_are_taken(changes: dict[str, Any]) -> None:
    assert errors(changes) == []


def test_the_stages_of_a_plan() -> None:
    def stages(changes: dict[str, Any]) -> Any:
        return facts_of(job(changes)).results("stages")

    assert stages({}) == ((0, 32),)
    assert stages(piped(4)) == ((0, 8), (8, 17), (17, 25), (25, 32))
    assert stages({"mesh.pp": 4}) == stages(piped(4))
    assert stages(piped(2, schedule="interleaved", stages_per_rank=2)) == stages(piped(4))
    assert stages(piped(2, cuts=(30,))) == ((0, 30), (30, 32))
    assert stages(piped(2, **{"weights.embedding": 0, "weights.head": 4})) == ((0, 18), (18, 32))


def test_split_backward_keeps_parameters_unless_told_otherwise() -> None:
    def reshard(changes: dict[str, Any]) -> Any:
        return facts_of(job(changes)).results("program")[-3].reshard

    assert reshard(piped(2)) == "default"
    assert reshard(piped(2, schedule="zbv", stages_per_rank=2)) == "never"
    assert reshard({**piped(2, schedule="zbv", stages_per_rank=2), "apply.fsdp.reshard": 1}) == 1


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_a_pipeline_of_one_rank_has_all_layers_there(schedule: str) -> None:
    facts = facts_of(job(piped(1, schedule=schedule, stages_per_rank=2)))
    assert facts.results("layout").held == ((0,),)
    assert [op.name for op in facts.results("program")] == ["build", "fsdp", "materialise", "initialise"]
