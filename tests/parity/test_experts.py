"""Do experts dealt to ranks compute and learn what they do in one process?

fp64 at a relative 1e-12: output and gradients of tokens, router and every stack of experts, tensor by tensor.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest
import torch

from forgeplan.runtime.selftest.pool import Pools
from forgeplan.spec.router.routers import SoftmaxTopk
from tests.parity.experts_on_ranks import Case, in_one_process
from tests.runtime.model.moe.layers import moe, sigmoid

EVERYTHING: dict[str, Any] = {
    "experts": 8, "top_k": 3, "shared": 1, "balance": Fraction(1, 10), "sequence_balance": Fraction(1, 5),
    "z": Fraction(1, 50), "capacity": Fraction(1), "scale_gradients": True,
}  # fmt: skip
SIGMOID = sigmoid("2.5")


def check(case: Case, world: int, pools: Pools) -> None:
    wanted = in_one_process(case, world)
    answers = pools[world].run("tests.parity.experts_on_ranks:on_this_rank", case)
    assert len(answers) == world
    for found in answers:
        assert found.counts_E.tolist() == wanted.counts_E.tolist()
        assert found.dropped == wanted.dropped
        assert torch.allclose(found.losses, wanted.losses, rtol=1e-12, atol=0)
        pairs = {f"output {i}": pair for i, pair in enumerate(zip(found.outputs, wanted.outputs, strict=True))}
        pairs |= {f"input {i}": pair for i, pair in enumerate(zip(found.inputs, wanted.inputs, strict=True))}
        pairs |= {name: (found.gradients[name], gradient) for name, gradient in wanted.gradients.items()}
        for name, (ours, theirs) in pairs.items():
            assert ours.shape == theirs.shape, name
            assert (ours - theirs).norm() <= 1e-12 * theirs.norm(), name


@pytest.mark.parametrize(("world", "ep", "per_node"), [(2, 2, None), (4, 2, None), (4, 4, None), (4, 4, 2)])
@pytest.mark.parametrize("router", [{}, {"router": SIGMOID, "groups": 4, "group_limit": 2}], ids=["softmax", "sigmoid"])
def test_experts_on_other_ranks(
    world: int, ep: int, per_node: int | None, router: dict[str, Any], pools: Pools
) -> None:
    """The gradient of an expert is the sum over all tokens, once: the ratio to one process is 1.000, not ep."""
    check(Case(moe(experts=8, top_k=3, **router), ep, per_node), world, pools)


@pytest.mark.parametrize("per_node", [None, 2], ids=["flat", "by_node"])
def test_a_rank_without_tokens_and_experts_without_tokens_take_part(per_node: int | None, pools: Pools) -> None:
    router = SoftmaxTopk(renormalise=False)
    case = Case(moe(experts=8, top_k=1, router=router, scale_gradients=True), 4, per_node, without=2, shift=4.0)
    counts_RL = in_one_process(case, 4).counts_E.view(4, 2)
    assert not all(counts_RL.sum(1).bool())
    check(case, 4, pools)


def test_one_expert_a_rank_and_every_expert_for_every_token(pools: Pools) -> None:
    check(Case(moe(experts=4, top_k=4), 4), 4, pools)


@pytest.mark.parametrize(("world", "ep"), [(2, 1), (2, 2), (4, 2)])
@pytest.mark.parametrize("router", [{}, {"router": SIGMOID}], ids=["softmax", "sigmoid"])
def test_ranks_that_share_a_microbatch(world: int, ep: int, router: dict[str, Any], pools: Pools) -> None:
    """Head-tail parts of the sequences: the same assignments are dropped, and statistics are those of the whole."""
    case = Case(moe(**(EVERYTHING | router)), ep, is_shared=True)
    assert in_one_process(case, world).dropped > 0
    check(case, world, pools)


def test_ranks_with_microbatches_of_their_own_take_statistics_of_their_own(pools: Pools) -> None:
    check(Case(moe(**EVERYTHING), 2), 4, pools)
