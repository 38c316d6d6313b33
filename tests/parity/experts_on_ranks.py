"""What do the tests of expert parallelism run on every rank, and in one process?

A layer of experts with weights that are functions of their names, on tokens that are functions of the microbatch.
"""

from __future__ import annotations

from typing import Any

import torch
from attrs import evolve, frozen
from torch import Tensor, distributed, nn
from torch.distributed.device_mesh import init_device_mesh

from forgeplan.runtime.model.module import Module
from forgeplan.runtime.model.moe.layer import MoE
from forgeplan.runtime.parallel.axes import Axes, ContextParallel, ExpertParallel
from forgeplan.runtime.parallel.collectives import Group, all_reduced
from forgeplan.spec.model.moe import Moe
from tests.runtime.model.moe.layers import layer, tokens

LENGTH = 16
EXPERTS = ("experts.w_gate", "experts.w_up", "experts.w_down")


@frozen
class Case:
    """`ep` ranks a group, of nodes of `per_node` ranks; ranks hold a microbatch each, or parts of one (`is_shared`).
    The rank `without` has no tokens at all. With a large `shift` of all tokens, a few experts get them all."""

    spec: Moe
    ep: int
    per_node: int | None = None
    is_shared: bool = False
    without: int | None = None
    shift: float = 0.0


@frozen
class Found:
    """Sums over microbatches, except where a list says otherwise."""

    outputs: list[Tensor]
    """By microbatch, with those of the gradients of its tokens."""
    inputs: list[Tensor]
    gradients: dict[str, Tensor]
    losses: Tensor
    """balance, sequence_balance, z."""
    counts_E: Tensor
    dropped: int


def in_one_process(case: Case, world: int) -> Found:
    made = layer(case.spec)
    found = [_passed(made, *_microbatch(case, i)) for i in range(1 if case.is_shared else world)]
    gradients = {name: _gradient(p) for name, p in made.named_parameters()}
    outputs, inputs, losses, counts, dropped = zip(*found, strict=True)
    return Found(list(outputs), list(inputs), gradients, sum(losses), sum(counts), sum(dropped))


def on_this_rank(case: Case) -> Found:
    """The same on one of several ranks, put together again: every rank answers with the whole."""
    rank, world = distributed.get_rank(), distributed.get_world_size()
    everyone = Group(world, rank, distributed.group.WORLD)
    made = layer(case.spec)
    ep, position = _expert_parallel(case, world), rank % case.ep
    for name in EXPERTS:
        whole = getattr(made.experts, name.removeprefix("experts."))
        setattr(made.experts, name.removeprefix("experts."), nn.Parameter(whole.detach().chunk(case.ep)[position]))
    cp = ContextParallel(everyone if case.is_shared else Group())
    axes = Axes(ep=ep, cp=cp, microbatch=everyone if case.is_shared else Group())
    for module in made.modules():
        if isinstance(module, Module):
            module.axes = axes
    x, cotangent = _microbatch(case, 0 if case.is_shared else rank)
    places = cp.own_places(LENGTH, torch.device("cpu"))
    output, inputs, losses, counts, dropped = _passed(made, cp.own(x), cp.own(cotangent), places)
    gradients = {name: _put_together(case, name, _gradient(p), everyone) for name, p in made.named_parameters()}
    return Found(
        _by_microbatch(output, cp, everyone),
        _by_microbatch(inputs, cp, everyone),
        gradients,
        all_reduced(losses, everyone),
        all_reduced(counts, everyone),
        int(all_reduced(torch.tensor(dropped), everyone)),
    )


def _microbatch(case: Case, number: int) -> tuple[Tensor, Tensor]:
    batch = 0 if number == case.without else 2
    return case.shift + tokens(batch, LENGTH, seed=number), tokens(batch, LENGTH, seed=1000 + number)


def _passed(made: MoE, x: Tensor, cotangent: Tensor, places: Tensor | None = None) -> Any:
    x = x.clone().requires_grad_()
    y, routing = made(x, places)
    losses = torch.stack([routing.balance, routing.sequence_balance, routing.z])
    ((y * cotangent).sum() + losses.sum()).backward()
    return y.detach(), _gradient(x), losses.detach(), routing.counts_E, int(routing.dropped)


def _gradient(tensor: Tensor) -> Tensor:
    if tensor.grad is None:
        raise AssertionError("a tensor without a gradient has left the graph")
    return tensor.grad


def _expert_parallel(case: Case, world: int) -> ExpertParallel:
    group = _group(world, (world // case.ep, case.ep), 1)
    if case.per_node is None:
        return ExpertParallel(group)
    shape = (world // case.ep, case.ep // case.per_node, case.per_node)
    return evolve(ExpertParallel(group), inside=_group(world, shape, 2), between=_group(world, shape, 1))


def _group(world: int, shape: tuple[int, ...], dim: int) -> Group:
    names = tuple("abc"[: len(shape)])
    axis = init_device_mesh("cpu", shape, mesh_dim_names=names)[names[dim]]
    return Group(axis.size(), axis.get_local_rank(), axis.get_group())


def _put_together(case: Case, name: str, gradient: Tensor, everyone: Group) -> Tensor:
    """Summed over ranks; of experts, each rank's at their place in the stack."""
    if name not in EXPERTS:
        return all_reduced(gradient, everyone)
    whole = gradient.new_zeros((case.ep, *gradient.shape))
    whole[everyone.index % case.ep] = gradient
    return all_reduced(whole, everyone).flatten(0, 1)


def _by_microbatch(x: Tensor, cp: ContextParallel, everyone: Group) -> list[Tensor]:
    parts: list[Any] = [None] * everyone.size
    distributed.all_gather_object(parts, x)
    if cp.group.size == 1:
        return parts
    order = torch.cat([cp.places(LENGTH, i, x.device) for i in range(everyone.size)]).argsort()
    return [torch.cat(parts, 1)[:, order]]
