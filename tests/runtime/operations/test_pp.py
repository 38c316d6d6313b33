"""Does each rank of a pipeline hold its stages, and nothing else?"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import torch
from attrs import evolve
from torch import Tensor, distributed

from forgeplan.diagnostics.refusal import Refusal
from forgeplan.plan.execution_plan import ExecutionPlan
from forgeplan.plan.mesh import Mesh
from forgeplan.plan.operations import Build, Pp
from forgeplan.runtime.executor import build
from forgeplan.runtime.optim.optimizer import build_optimizer
from forgeplan.runtime.selftest.pool import Pools, RankFailed
from forgeplan.runtime.state import TrainState
from forgeplan.runtime.train import train
from tests.runtime.tiny import Quiet, TinyData, decoder, execution_plan

CPU = torch.device("cpu")
ONE_A_RANK = ((0, 3), (3, 6))
TWO_A_RANK = ((0, 1), (1, 3), (3, 5), (5, 6))


@pytest.fixture(scope="module")
def pools() -> Iterator[Pools]:
    made = Pools()
    yield made
    made.close()


@pytest.fixture
def alone() -> Iterator[None]:
    """A group of one rank, which torch's stages want even then."""
    distributed.init_process_group("gloo", store=distributed.HashStore(), rank=0, world_size=1)
    yield
    distributed.destroy_process_group()


def pipelined(schedule: str, stages: Any, accumulation: int = 4) -> ExecutionPlan:
    options = {"schedule": schedule, "stages_per_rank": len(stages) // 2, "stages": stages}
    model = decoder(layers=6)
    return execution_plan(mesh=Mesh(pp=2), model=model, accumulation=accumulation, axes={"pp": options})


def modules_of(names: list[str]) -> list[str]:
    """`layers.3` for each parameter of layer 3, and so on; each once, in order."""
    return list(
        dict.fromkeys(".".join(n.split(".")[:2]) if n.startswith("layers.") else n.split(".")[0] for n in names)
    )


@pytest.mark.parametrize(
    ("schedule", "stages", "first", "second"),
    [
        ("gpipe", ONE_A_RANK, ["embedding 0 1 2"], ["3 4 5 norm head"]),
        ("one_f_one_b", ((0, 6), (6, 6)), ["embedding 0 1 2 3 4 5"], ["norm head"]),
        ("interleaved", TWO_A_RANK, ["embedding 0", "3 4"], ["1 2", "5 norm head"]),
        ("zero_bubble", ((0, 0), (0, 3), (3, 6), (6, 6)), ["embedding", "3 4 5"], ["0 1 2", "norm head"]),
        ("zbv", TWO_A_RANK, ["embedding 0", "5 norm head"], ["1 2", "3 4"]),
    ],
)
def test_a_rank_holds_the_modules_of_its_stages_under_their_names_in_the_whole(
    schedule: str, stages: Any, first: list[str], second: list[str], pools: Pools
) -> None:
    answers = pools[2].run("tests.parity.stages_on_ranks:held", pipelined(schedule, stages))
    for (names, of_stages), wanted in zip(answers, (first, second), strict=True):
        written = [[f"layers.{w}" if w.isdecimal() else w for w in stage.split()] for stage in wanted]
        assert [modules_of(stage) for stage in of_stages] == written
        assert sorted(names) == sorted(name for stage in of_stages for name in stage)


@pytest.mark.parametrize(
    ("schedule", "accumulation"), [("one_f_one_b", 1), ("interleaved", 5), ("zero_bubble", 5), ("dualpipe_v", 3)]
)
def test_microbatches_that_torch_does_not_take_are_refused_before_there_is_memory(
    schedule: str, accumulation: int, pools: Pools
) -> None:
    """C021, for a plan that no compiler has seen."""
    stages = ONE_A_RANK if schedule == "one_f_one_b" else TWO_A_RANK
    with pytest.raises(RankFailed, match=r"FP1009: torch .* does not make the pipeline of the plan: "):
        pools[2].run("tests.parity.stages_on_ranks:held", pipelined(schedule, stages, accumulation))


def of_one_stage() -> ExecutionPlan:
    plan = execution_plan(accumulation=2, total_steps=2)
    stage = Pp("mesh", schedule="gpipe", stages=((0, 2),))
    return evolve(plan, program=(Build("always"), stage, *plan.program[1:]))


@pytest.mark.usefixtures("alone")
def test_what_a_stage_raises_is_what_training_raises() -> None:
    """So that a lack of memory is told from a bug; torch would raise a RuntimeError with shapes in its place."""
    bundle = build(of_one_stage(), CPU)
    services = Quiet()

    def fail(module: Any, inputs: Any, output: Tensor) -> None:
        if services.reports:
            raise MemoryError("no memory for logits")

    bundle.model.head.register_forward_hook(fail)
    with pytest.raises(MemoryError, match="no memory for logits"):
        train(bundle.plan, bundle, build_optimizer(bundle), TinyData(bundle.plan), TrainState(), services)


def test_a_part_of_a_model_has_the_same_modules_and_hooks_of_its_own() -> None:
    """FSDP hangs hooks on every stage."""
    whole: Any = build(execution_plan(), CPU).model
    called = []
    parts = [whole.part([layer], embedding=layer == 0, head=layer == 1) for layer in (0, 1)]
    assert parts[1].layers["1"] is whole.layers["1"]
    assert [part.embedding is None for part in parts] == [part.head is not None for part in parts] == [False, True]
    parts[0].register_forward_hook(lambda *_: called.append("first"))
    tokens = TinyData(execution_plan()).microbatch(0).tokens_BS
    logits = parts[1](parts[0](tokens).logits_BSV).logits_BSV
    assert called == ["first"]
    assert torch.equal(logits, whole(tokens).logits_BSV)
    assert called == ["first"]


@pytest.mark.usefixtures("alone")
def test_stages_that_leave_layers_out_are_refused() -> None:
    plan = of_one_stage()
    program = tuple(evolve(op, stages=((0, 1),)) if isinstance(op, Pp) else op for op in plan.program)
    with pytest.raises(Refusal, match=r"(?s)FP1009.*layers\.1\.\S+: planned, and not built"):
        build(evolve(plan, program=program), CPU)
