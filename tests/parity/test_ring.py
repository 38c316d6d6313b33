"""Do ranks that pass keys and values round compute what one process computes from the definition?

Output and the gradients of queries, keys and values, put together again from the places that ranks hold.
"""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from forgeplan.runtime.selftest.pool import Pools
from tests.parity.ring_on_ranks import LENGTH, WIDTH, Case, Found

WITHIN = {torch.float64: 1e-14, torch.float32: 1e-5, torch.bfloat16: 1e-2}


def defined(case: Case) -> tuple[Tensor, tuple[Tensor, ...]]:
    """In fp64, from the values that the case has in its dtype."""
    q, k, v, cotangent = (x.double() for x in case.tensors())
    leaves = [x.requires_grad_() for x in (q, k, v)]
    keys, values = (x.repeat_interleave(case.heads // case.kv_heads, 1) for x in leaves[1:])
    hidden = torch.ones(LENGTH, LENGTH, dtype=torch.bool).triu(1)
    scores = (leaves[0] @ keys.mT / WIDTH**0.5).masked_fill(hidden, -torch.inf)
    output = scores.softmax(-1) @ values
    return output.detach(), torch.autograd.grad(output, leaves, cotangent)


def whole(found: list[Found], parts: list[Tensor]) -> Tensor:
    places = torch.tensor([place for one in found for place in one.places])
    return torch.cat(parts, 2)[:, :, places.argsort()]


CASES = {
    "grouped queries": Case(),
    "in order": Case(balance="none"),
    "one kv head": Case(kv_heads=1),
    "a kv head each": Case(kv_heads=4),
    "fp32": Case(dtype=torch.float32),
    "bf16": Case(dtype=torch.bfloat16),
    "by the definition": Case(fused=False),
    "by the definition, in order, bf16": Case(balance="none", fused=False, dtype=torch.bfloat16),
}


@pytest.mark.parametrize("world", [2, 4])
@pytest.mark.parametrize("name", CASES)
def test_a_ring_attends_as_one_process(name: str, world: int, pools: Pools) -> None:
    check(CASES[name], world, pools)


def test_a_ring_is_one_graph_of_a_compiled_block(pools: Pools) -> None:
    check(Case(compiled=True), 2, pools)


def check(case: Case, world: int, pools: Pools) -> None:
    found = pools[world].run("tests.parity.ring_on_ranks:on_this_rank", case)
    output, gradients = defined(case)
    pairs = {"output": (whole(found, [f.output for f in found]), output)}
    for i, name in enumerate("qkv"):
        pairs[name] = whole(found, [f.gradients[i] for f in found]), gradients[i]
    for name, (ours, theirs) in pairs.items():
        assert ours.dtype == case.dtype
        assert (ours.double() - theirs).norm() <= WITHIN[case.dtype] * theirs.norm(), name
