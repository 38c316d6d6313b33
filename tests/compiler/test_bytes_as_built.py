"""Do the planned bytes of a rank equal those of the model that the runtime builds there?

A fake process group gives every rank's shapes in one process: collectives do nothing, so values are meaningless, but
the tensors are those of the rank.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import torch
from torch import Tensor, distributed, nn
from torch.distributed.fsdp import FSDPModule
from torch.distributed.tensor import DTensor
from torch.testing._internal.distributed.fake_pg import FakeStore

from forgeplan.compiler import emit
from forgeplan.compiler.explain import explain
from forgeplan.compiler.explain.memory import unreduced_bytes
from forgeplan.compiler.explain.written import layout
from forgeplan.plan.execution_plan import ExecutionPlan, RankClass
from forgeplan.runtime import executor
from forgeplan.runtime.executor import Bundle, build
from forgeplan.runtime.loss import forward_loss
from forgeplan.runtime.operations.fsdp import _unreduced_gradients_fit
from forgeplan.runtime.optim.optimizer import build_optimizer
from forgeplan.runtime.precision import dtype_of
from tests.compiler.jobs import job
from tests.compiler.test_parameters import TINY
from tests.compiler.test_shards import ranks_of
from tests.runtime.tiny import TinyData

CPU = {"cluster.arch": "cpu", "cluster.hbm": None, "batch.global": ..., "batch.accumulation": 1, "batch.micro": 1,
       "batch.length": 8, "precision.compute": "fp32"}  # fmt: skip

LAYOUTS: dict[str, tuple[dict[str, Any], list[int]]] = {
    "one rank": ({"cluster.devices_per_node": 1}, [0]),
    "three shards": ({"cluster.devices_per_node": 3}, [0, 1, 2]),
    "more ranks than rows": ({"cluster.devices_per_node": 7, "model.kv_heads": 1, "model.qk_norm": True}, [0, 5, 6]),
    "replicas of shards": ({"cluster.devices_per_node": 6, "mesh.dp_replicate": 2}, [0, 2, 3, 5]),
    "replicas only": ({"cluster.devices_per_node": 2, "mesh.dp_replicate": 2}, [1]),
    "tied, layer norm, biases": (
        {"cluster.devices_per_node": 3, "model.tie": True, "model.norm": "layer", "model.bias": True},
        [0, 2],
    ),
    "bf16 moments": ({"cluster.devices_per_node": 3, "precision.moments": "bf16"}, [2]),
    "bf16 throughout": (
        {"cluster.devices_per_node": 3, "precision.params": "bf16", "precision.compute": "bf16",
         "precision.moments": "bf16", "precision.reduce": "fp32"},
        [0, 2],
    ),
    "tp": ({"cluster.devices_per_node": 2, "mesh.tp": 2}, [0, 1]),
    "tp, whole sequences, uneven vocabulary": (
        {"cluster.devices_per_node": 4, "mesh.tp": 4, "model.vocab": 251, "apply": {"tp": 0},
         "apply.tp.sequence": False, "apply.tp.kv": "replicate", "model.qk_norm": True},
        [0, 3],
    ),
    "cp": ({"cluster.devices_per_node": 4, "mesh.cp": 4}, [0, 3]),
    "tp, cp and uneven shards": (
        {"cluster.devices_per_node": 12, "mesh.tp": 2, "mesh.cp": 2, "model.norm": "layer", "model.bias": True},
        [0, 1, 10, 11],
    ),
    "replicas of shards of tp": (
        {"cluster.devices_per_node": 12, "mesh.tp": 2, "mesh.dp_replicate": 2, "model.tie": True},
        [0, 5, 6, 11],
    ),
}  # fmt: skip

EXPERTS = {"model.moe.experts": 6, "model.moe.top_k": 2, "model.moe.ffn": 48, "model.moe.shared": 1,
           "model.moe.first_dense": 1}  # fmt: skip
MIXTURES: dict[str, tuple[dict[str, Any], list[int]]] = {
    "one rank": ({"cluster.devices_per_node": 1}, [0]),
    "shards of experts": ({"cluster.devices_per_node": 4}, [0, 3]),
    "cut inside experts": ({"cluster.devices_per_node": 8}, [0, 7]),
    "ep": ({"cluster.devices_per_node": 4, "mesh.ep": 2}, [0, 1, 2, 3]),
    "ep over tp": ({"cluster.devices_per_node": 8, "mesh.tp": 2, "mesh.ep": 2}, [0, 1, 7]),
    "ep over tp and cp, replicas": (
        {"cluster.devices_per_node": 24, "mesh.dp_replicate": 2, "mesh.tp": 2, "mesh.cp": 2, "mesh.ep": 6},
        [0, 5, 6, 23],
    ),
    "tp alone": ({"cluster.devices_per_node": 2, "mesh.tp": 2}, [0, 1]),
    "tp, whole sequences": (
        {"cluster.devices_per_node": 4, "mesh.tp": 2, "apply": {"tp": 0}, "apply.tp.sequence": False},
        [0, 3],
    ),
}

SIX_LAYERS = {"model.layers": 6, "batch.accumulation": 4, "mesh.pp": 2}
LOOPED = {"apply": {"pp": 0}, "apply.pp.schedule": "interleaved", "apply.pp.stages_per_rank": 2}
PIPELINES: dict[str, tuple[dict[str, Any], list[int]]] = {
    "no data ranks": ({"cluster.devices_per_node": 2}, [0, 1]),
    "stages of shards": ({"cluster.devices_per_node": 6}, [0, 2, 3, 5]),
    "stages of replicas": ({"cluster.devices_per_node": 4, "mesh.dp_replicate": 2}, [0, 3]),
    "two stages a rank, tp": ({"cluster.devices_per_node": 8, "mesh.tp": 2, **LOOPED}, [0, 3, 4, 7]),
    "bf16 products": ({"cluster.devices_per_node": 4, "precision.compute": "bf16", "model.qk_norm": True}, [1, 2]),
    "a stage with the embedding alone": (
        {"cluster.devices_per_node": 4, "apply": {"pp": 0}, "apply.pp.cuts": (0,)},
        [0, 2],
    ),
}


@pytest.mark.parametrize(("changes", "ranks"), LAYOUTS.values(), ids=LAYOUTS)
def test_planned_bytes_are_the_bytes_of_the_built_model(changes: dict[str, Any], ranks: list[int]) -> None:
    plan = emit(job({**TINY, **CPU, **changes}))
    for rank in ranks:
        planned = class_of(plan, rank)
        assert built(plan, rank) == (planned.parameter_bytes, planned.gradient_bytes, planned.optimizer_bytes)


@pytest.mark.parametrize(("changes", "ranks"), MIXTURES.values(), ids=MIXTURES)
def test_planned_bytes_of_experts_are_those_of_the_built_model(changes: dict[str, Any], ranks: list[int]) -> None:
    """Gradients only where tokens stay on their rank: a fake process group tells no expert how many come."""
    plan = emit(job({**TINY, **CPU, **EXPERTS, **changes}))
    for rank in ranks:
        planned = class_of(plan, rank)
        parameters, gradients, state = built(plan, rank, trains=plan.mesh.ep == 1)
        assert (parameters, state) == (planned.parameter_bytes, planned.optimizer_bytes)
        assert gradients == (planned.gradient_bytes if plan.mesh.ep == 1 else 0)


@pytest.mark.parametrize(("changes", "ranks"), PIPELINES.values(), ids=PIPELINES)
def test_planned_bytes_of_stages_are_those_of_the_built_ones(
    changes: dict[str, Any], ranks: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    # A fake world does not answer which parameters other stages have.
    monkeypatch.setattr(executor, "_held_nowhere", lambda bundle, planned, held: [])
    plan = emit(job({**TINY, **CPU, **SIX_LAYERS, **changes}))
    for rank in ranks:
        planned = class_of(plan, rank)
        with one_rank(plan, rank) as bundle:
            parameters = size(list(bundle.model.parameters()))
            state = state_bytes(bundle)
            gradients, gathered = accumulated(bundle)
        assert (parameters, state) == (planned.parameter_bytes, planned.optimizer_bytes)
        assert gradients == planned.gradient_bytes
        assert gathered == gathered_on(plan, rank)


@pytest.mark.parametrize(
    "changes",
    [
        {"cluster.devices_per_node": 3},
        {"cluster.devices_per_node": 2, "mesh.dp_replicate": 2, "model.tie": True},
        {"cluster.devices_per_node": 4, "mesh.tp": 2, "model.vocab": 251},
        {"cluster.devices_per_node": 8, "mesh.tp": 2, "mesh.ep": 4, **EXPERTS, "model.moe.experts": 8},
    ],
    ids=["fsdp", "replicas", "tp", "tp and ep"],
)
def test_gradients_that_wait_for_the_last_microbatch_are_told_as_the_runtime_decides(changes: dict[str, Any]) -> None:
    plan = emit(job({**TINY, **CPU, **changes, "batch.accumulation": 2}))
    size = unreduced_bytes(plan, layout(plan))
    (operation,) = (op for op in plan.program if op.name == "fsdp")
    for hbm, is_once in ((None, True), (4 * size, True), (4 * size - 1, False)):
        limited = emit(job({**TINY, **CPU, **changes, "batch.accumulation": 2, "cluster.hbm": hbm}))
        with one_rank(limited, 0) as bundle:
            assert sum(p.numel() for p in bundle.model.parameters()) * 4 == size
            assert _unreduced_gradients_fit(operation, bundle) == is_once
        page = " ".join(explain(limited).split())
        assert ("microbatches of a step add gradients up before reducing them" in page) == is_once
        assert ("Each microbatch reduces its gradients" in page) != is_once


def accumulated(bundle: Bundle) -> tuple[int, int]:
    """Bytes of the gradients that wait for the end of a step, and of gathered parameters, after two microbatches.

    Every stage computes on its own, with what torch's pipeline tells FSDP before each backward.
    """
    for stage in bundle.stages:
        for _ in range(2):
            if isinstance(stage, FSDPModule):
                stage.set_is_last_backward(False)
                stage.set_reshard_after_backward(False)
                stage.set_requires_gradient_sync(False)
            stage(entering(bundle, stage)).sum().backward()
    # Modules of one unit have the same parameters.
    shards = {id(shard): shard for module in bundle.model.modules() for shard in fsdp_parameters(module)}.values()
    if not shards:
        return size([p.grad for p in bundle.model.parameters()]), 0
    gradients = [
        s.unsharded_param.grad if s.unsharded_accumulated_grad is None else s.unsharded_accumulated_grad for s in shards
    ]
    return size(gradients), size([s.unsharded_param for s in shards])


def fsdp_parameters(module: nn.Module) -> list[Any]:
    if not isinstance(module, FSDPModule):
        return []
    return [shard for group in module._get_fsdp_state()._fsdp_param_groups for shard in group.fsdp_params]


def entering(bundle: Bundle, stage: Any) -> Tensor:
    """Tokens for the first stage, activations of a rank's positions for others."""
    job = bundle.plan.job
    if stage.embedding is not None:
        return torch.zeros(1, job.batch.length, dtype=torch.long)
    positions = job.batch.length // bundle.plan.mesh.tp
    return torch.ones(1, positions, job.model.dim, dtype=dtype_of(job.precision.compute), requires_grad=True)


def gathered_on(plan: ExecutionPlan, rank: int) -> int:
    """Planned bytes of gathered parameters: of the rank that needs most, or counted from its class."""
    size_of, reduce_bytes = {"fp32": 4, "bf16": 2}, 4
    if plan.mesh.data_ranks == 1:
        return 0
    return class_of(plan, rank).gradient_bytes // reduce_bytes * size_of[plan.job.precision.compute]


def class_of(plan: ExecutionPlan, rank: int) -> RankClass:
    (found,) = (ranks for ranks in plan.rank_classes if rank in ranks_of(ranks))
    return found


@contextmanager
def one_rank(plan: ExecutionPlan, rank: int) -> Iterator[Bundle]:
    """What a rank builds, in a world that does nothing."""
    if plan.mesh.world > 1:
        distributed.init_process_group("fake", store=FakeStore(), rank=rank, world_size=plan.mesh.world)
    try:
        yield build(plan, torch.device("cpu"))
    finally:
        if plan.mesh.world > 1:
            distributed.destroy_process_group()


def built(plan: ExecutionPlan, rank: int, *, trains: bool = True) -> tuple[int, int, int]:
    """Bytes of parameters, gradients after a backward, and optimizer state on a rank."""
    with one_rank(plan, rank) as bundle:
        state = state_bytes(bundle)
        if trains:
            torch.autograd.backward(forward_loss(bundle, TinyData(plan).microbatch(0), None).loss)
        parameters = list(bundle.model.parameters())
        return size(parameters), size([p.grad for p in parameters if p.grad is not None]), state


def state_bytes(bundle: Bundle) -> int:
    return size([tensor for state in build_optimizer(bundle).named_state().values() for tensor in state.values()])


def size(tensors: list[Any]) -> int:
    local = [t.to_local() if isinstance(t, DTensor) else t for t in tensors]
    return sum(t.numel() * t.element_size() for t in local if isinstance(t, Tensor))
