"""How do tensors cross ranks in forward, and their gradients in backward?

Every exchange is waited for at once: a tensor still under way must not enter a compiled block. Functions of one rank
return what they were given.
"""

from __future__ import annotations

from typing import Any

import torch
from attrs import frozen
from torch import Tensor
from torch.distributed import ProcessGroup

_ops = torch.ops._c10d_functional


@frozen
class Group:
    """Ranks that exchange, and this rank's place among them. `Group()` is one rank alone."""

    size: int = 1
    index: int = 0
    process_group: ProcessGroup | None = None

    @property
    def name(self) -> str:
        return "" if self.process_group is None else str(self.process_group.group_name)


def gathered(x: Tensor, group: Group, dim: int) -> Tensor:
    """The parts of all ranks, one after the other along `dim`. Gradients: each rank gets the sum of its part's."""
    return x if group.size == 1 else _Gather.apply(x, group, dim)


def scattered_sum(x: Tensor, group: Group, dim: int) -> Tensor:
    """This rank's part along `dim` of the sum over ranks; the dim divides evenly. Gradients are gathered."""
    return x if group.size == 1 else _ScatterSum.apply(x, group, dim)


def copied(x: Tensor, group: Group) -> Tensor:
    """x, which is the same on every rank; the ranks use it for different things, so its gradients are summed."""
    return x if group.size == 1 else _Copy.apply(x, group)


def summed(x: Tensor, group: Group) -> Tensor:
    """The sum over ranks, used alike by all: the gradient is the same on every rank and goes to each part."""
    return x if group.size == 1 else _Sum.apply(x, group)


def shared_sum(x: Tensor, group: Group) -> Tensor:
    """The sum over ranks, of which each rank makes its share of one total: gradients are summed too."""
    return x if group.size == 1 else _SharedSum.apply(x, group)


def exchanged(x: Tensor, sent: list[int], received: list[int], group: Group) -> Tensor:
    """Rows for each rank in turn (`sent` of them), and rows of each rank in turn (`received`). Gradients go back."""
    return x if group.size == 1 else _Exchange.apply(x, sent, received, group)


def all_reduced(x: Tensor, group: Group, how: str = "sum") -> Tensor:
    """Sum, max … over ranks, without gradient; a new tensor."""
    return x if group.size == 1 else _ops.wait_tensor(_ops.all_reduce(x.contiguous(), how, group.name))


def _all_gather(x: Tensor, group: Group, dim: int) -> Tensor:
    flat = _ops.wait_tensor(_ops.all_gather_into_tensor(x.contiguous(), group.size, group.name))
    return flat if dim == 0 else torch.cat(flat.chunk(group.size), dim)


def _reduce_scatter(x: Tensor, group: Group, dim: int) -> Tensor:
    stacked = x if dim == 0 else torch.cat(x.chunk(group.size, dim))
    return _ops.wait_tensor(_ops.reduce_scatter_tensor(stacked.contiguous(), "sum", group.size, group.name))


def _all_to_all(x: Tensor, sent: list[int], received: list[int], group: Group) -> Tensor:
    return _ops.wait_tensor(_ops.all_to_all_single(x.contiguous(), received, sent, group.name))


class _Gather(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, group: Group, dim: int) -> Tensor:
        ctx.group, ctx.dim = group, dim
        return _all_gather(x, group, dim)

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> tuple[Tensor, None, None]:
        return _reduce_scatter(gradients[0], ctx.group, ctx.dim), None, None


class _ScatterSum(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, group: Group, dim: int) -> Tensor:
        ctx.group, ctx.dim = group, dim
        return _reduce_scatter(x, group, dim)

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> tuple[Tensor, None, None]:
        return _all_gather(gradients[0], ctx.group, ctx.dim), None, None


class _Copy(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, group: Group) -> Tensor:
        ctx.group = group
        return x.view_as(x)

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> tuple[Tensor, None]:
        return all_reduced(gradients[0], ctx.group), None


class _Sum(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, group: Group) -> Tensor:
        return all_reduced(x, group)

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> tuple[Tensor, None]:
        return gradients[0], None


class _SharedSum(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, group: Group) -> Tensor:
        ctx.group = group
        return all_reduced(x, group)

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> tuple[Tensor, None]:
        return all_reduced(gradients[0], ctx.group), None


class _Exchange(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, sent: list[int], received: list[int], group: Group) -> Tensor:
        ctx.sent, ctx.received, ctx.group = sent, received, group
        return _all_to_all(x, sent, received, group)

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> tuple[Tensor, None, None, None]:
        return _all_to_all(gradients[0], ctx.received, ctx.sent, ctx.group), None, None, None
