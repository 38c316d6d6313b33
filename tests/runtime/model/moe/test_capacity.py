"""Does an expert take what it has room for, over all choices of all tokens, and is the rest reported?"""

from __future__ import annotations

from fractions import Fraction

import pytest
import torch

from forgeplan.runtime.model.moe.capacity import within_capacity
from forgeplan.runtime.parallel.collectives import Group
from tests.runtime.model.moe.layers import layer, moe, tokens


@pytest.mark.parametrize(("factor", "room", "dropped"), [("1", 4, 8), ("1.25", 5, 6), (None, 8, 0)])
def test_all_tokens_prefer_two_experts(factor: str | None, room: int, dropped: int) -> None:
    """C090: 8 tokens, 4 experts, top-2: 4 each of experts 0 and 1, 8 of 16 dropped; 5 with a factor of 1.25."""
    made = layer(moe(capacity=None if factor is None else Fraction(factor)))
    x = tokens(batch=2, length=4).abs()
    with torch.no_grad():
        made.router.weight.copy_(torch.tensor([2.0, 1.0, -1.0, -2.0]).double()[:, None].expand(4, 16))
    y, routing = made(x)
    assert routing.counts_E.tolist() == [8, 8, 0, 0]
    assert routing.dropped.item() == dropped
    # First come first: the tokens behind them lost both experts, and pass by the layer unchanged.
    is_zero_T = (y == 0).all(-1).flatten()
    assert is_zero_T.tolist() == [False] * room + [True] * (8 - room)


def test_first_choices_come_before_second_ones_then_rows_then_places() -> None:
    """Room for ⌈¾·8/3⌉ = 2 each: the last token's first choice goes before the second choice of the first token."""
    experts_BSK = torch.tensor([[[1, 0], [1, 2]], [[1, 0], [0, 1]]])
    kept = within_capacity(experts_BSK, 3, Fraction(3, 4), torch.arange(2), Group())
    assert kept.tolist() == [[[True, True], [True, True]], [[False, False], [True, False]]]


def test_the_order_is_that_of_places_not_of_storage() -> None:
    experts_BSK = torch.tensor([[[0], [0], [0], [1]]])
    kept = within_capacity(experts_BSK, 2, Fraction(1), torch.tensor([3, 0, 2, 1]), Group())
    assert kept.flatten().tolist() == [False, True, True, True]


def test_room_is_rounded_up_exactly() -> None:
    """1.1·10/1 is 11, which binary floating point makes a little more and rounds up to 12."""
    experts_BSK = torch.zeros(1, 10, 1, dtype=torch.int64)
    assert within_capacity(experts_BSK, 11, Fraction("1.1"), torch.arange(10), Group()).sum() == 1


def test_dropped_assignments_give_no_gradient_to_their_expert() -> None:
    made = layer(moe(top_k=1, capacity=Fraction(1)))
    x = tokens(batch=1, length=4).abs().requires_grad_()
    with torch.no_grad():
        made.router.weight.copy_(torch.tensor([1.0, 0.0, 0.0, 0.0]).double()[:, None].expand(4, 16))
    made(x)[0].sum().backward()
    assert x.grad is not None
    assert [bool(row.any()) for row in x.grad[0]] == [True, False, False, False]
