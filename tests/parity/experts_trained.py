"""What do the tests of models with experts train on every rank, and in one process?"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import torch
from torch import Tensor

from forgeplan.plan.execution_plan import ExecutionPlan
from forgeplan.runtime.executor import Bundle, build, named_views
from forgeplan.runtime.optim.optimizer import build_optimizer
from forgeplan.runtime.parallel.placed import local
from forgeplan.runtime.selftest.executed import whole
from forgeplan.runtime.state import TrainState
from forgeplan.runtime.train import train
from tests.runtime.model.moe.layers import moe, sigmoid
from tests.runtime.tiny import Quiet, TinyData, adamw, decoder, execution_plan

CPU = torch.device("cpu")
STILL = adamw(lr=Fraction("1e-8"))
"""Weights hardly move, so that a balance is the bias's doing."""


def skewed_plan(**fields: Any) -> ExecutionPlan:
    """A step of 8·64 tokens, for a router that is made to favour the first of its experts."""
    model = decoder(layers=1, vocab=500, moe=moe(experts=8, top_k=2, router=sigmoid(rate="0.01")))
    given = {"model": model, "dtype": "fp64", "optimizer": STILL, "length": 64, "total_steps": 301, "schedule": None}
    return execution_plan(**(given | fields))


def train_skewed(plan: ExecutionPlan) -> tuple[list[tuple[int, ...]], Tensor]:
    """The load of the experts in every step, and the bias at the end."""
    bundle, services = build(plan, CPU), Quiet()
    _skew(bundle)
    train(plan, bundle, build_optimizer(bundle), TinyData(plan, bundle.meshes.data_rank), TrainState(), services)
    bias = whole(named_views(bundle))["layers.0.moe.router.bias"]
    return [report.routing["layers.0"].counts for report in services.reports], bias


@torch.no_grad()
def _skew(bundle: Bundle) -> None:
    """The first number of every token is large, and speaks for the first experts; the others tell tokens apart."""
    for place, parameter in bundle.parts():
        if place.name == "embedding.weight":
            local(parameter)[:, :1] += 0.1
        if place.name == "layers.0.moe.router.weight":
            shape = place.division.shape
            weight = 0.2 * torch.randn(shape, generator=torch.Generator().manual_seed(4), dtype=torch.float64)
            weight[:, 0] = torch.linspace(0.5, -0.5, shape[0])
            local(parameter).copy_(weight[place.slices])


def replicas_after_training(plan: ExecutionPlan) -> Any:
    """This rank's gradient norms, and its parts of the weights that data ranks hold copies of."""
    bundle, services = build(plan, CPU), Quiet()
    train(plan, bundle, build_optimizer(bundle), TinyData(plan, bundle.meshes.data_rank), TrainState(), services)
    weights = {place.name: local(p).detach() for place, p in bundle.parts() if not place.division.expert}
    return [report.grad_norm for report in services.reports], weights


def sizes_of_exchanges(plan: ExecutionPlan) -> tuple[int, ...]:
    """Ranks of the expert axis, of this rank's node among them, and of those with its place on the nodes."""
    ep = build(plan, CPU).axes.ep
    return tuple(group.size for group in (ep.group, ep.inside, ep.between) if group is not None)
