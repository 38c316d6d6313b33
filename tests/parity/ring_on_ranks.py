"""What do the tests of ring attention run on every rank?"""

from __future__ import annotations

from collections.abc import Callable

import torch
from attrs import frozen
from torch import Tensor, distributed

from forgeplan.runtime.parallel.axes import ContextParallel
from forgeplan.runtime.parallel.collectives import Group
from forgeplan.runtime.parallel.ring import ring_attention

LENGTH, WIDTH = 16, 8


@frozen
class Case:
    balance: str = "head_tail"
    heads: int = 4
    kv_heads: int = 2
    dtype: torch.dtype = torch.float64
    fused: bool = True
    compiled: bool = False

    def tensors(self) -> list[Tensor]:
        """q, k, v and the gradient of the output, as (B, H, S, d) over whole sequences."""
        random = torch.Generator().manual_seed(0)
        heads = (self.heads, self.kv_heads, self.kv_heads, self.heads)
        shapes = [(2, number, LENGTH, WIDTH) for number in heads]
        return [2 * torch.randn(shape, generator=random, dtype=torch.float64).to(self.dtype) for shape in shapes]


@frozen
class Found:
    places: list[int]
    output: Tensor
    gradients: list[Tensor]
    """Of q, k, v."""


def on_this_rank(case: Case) -> Found:
    group = Group(distributed.get_world_size(), distributed.get_rank(), distributed.group.WORLD)
    cp = ContextParallel(group, "ring", case.balance)
    places = cp.own_places(LENGTH, torch.device("cpu"))
    *inputs, cotangent = (x[:, :, places].contiguous() for x in case.tensors())
    leaves = [x.requires_grad_() for x in inputs]

    def attend(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return ring_attention(q, k, v, cp, fused=case.fused)

    run: Callable[..., Tensor] = torch.compile(attend, backend="aot_eager", fullgraph=True) if case.compiled else attend
    output = run(*leaves)
    return Found(places.tolist(), output.detach(), list(torch.autograd.grad(output, leaves, cotangent)))
