"""Are blocks of queries and keys told apart as the mask between them says, without the mask?"""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn.attention.flex_attention import create_block_mask
from torch.utils._python_dispatch import TorchDispatchMode

from forgeplan.runtime.model.mask import build_mask
from forgeplan.runtime.parallel.axes import ContextParallel
from forgeplan.runtime.parallel.collectives import Group
from tests.runtime.tiny import decoder

CPU = torch.device("cpu")


class Largest(TorchDispatchMode):
    """Notes the number of elements of the largest tensor that is made."""

    numel = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        made = func(*args, **(kwargs or {}))
        for tensor in made if isinstance(made, tuple | list) else [made]:
            if isinstance(tensor, Tensor):
                self.numel = max(self.numel, tensor.numel())
        return made


def packed(length: int) -> Tensor:
    """A row of documents of 50, 100, 150 … tokens, and one of two whose end is padding."""
    many = torch.repeat_interleave(torch.arange(40), torch.arange(1, 41) * 50)[:length]
    two = torch.arange(length) // (length // 2 + 1)
    two[-length // 5 :] = -1
    return torch.stack([many, two])


def kinds(mask: Any) -> tuple[Tensor, Tensor]:
    """(partly visible, wholly visible), each (B, Q, K)."""

    def dense(number: Tensor, order: Tensor) -> Tensor:
        listed = torch.arange(order.shape[-1]) < number[..., None]
        return torch.zeros(order.shape, dtype=torch.bool).scatter(-1, order.long(), listed)[:, 0]

    return dense(mask.kv_num_blocks, mask.kv_indices), dense(mask.full_kv_num_blocks, mask.full_kv_indices)


def built(length: int, window: int | None, documents: Tensor | None, cp: ContextParallel | None = None) -> Any:
    spec = decoder(attention="flex", window=window)
    return build_mask(spec, length, 0, documents, 2, CPU, cp=cp or ContextParallel()).blocks


@pytest.mark.parametrize("length", [1024, 1000, 100])
@pytest.mark.parametrize("window", [None, 300, 64])
@pytest.mark.parametrize("has_documents", [False, True])
def test_blocks_are_those_of_the_mask(length: int, window: int | None, has_documents: bool) -> None:
    documents = packed(length) if has_documents else None
    ours = built(length, window, documents)
    theirs = create_block_mask(ours.mask_mod, 2 if has_documents else None, None, length, length, device="cpu")
    for our, their in zip(kinds(ours), kinds(theirs), strict=True):
        # The padded row does not rise: there a block may be looked at in vain.
        assert torch.equal(our[0], their[0])
    (partial, full), (their_partial, their_full) = kinds(ours), kinds(theirs)
    assert torch.equal(full, their_full)
    assert bool(((partial | full) >= (their_partial | their_full)).all())
    assert torch.equal(ours.q_num_blocks.sum(), ours.kv_num_blocks.sum())


@pytest.mark.parametrize("balance", ["head_tail", "none"])
@pytest.mark.parametrize("index", [0, 1])
def test_places_of_a_cp_rank_are_covered(balance: str, index: int) -> None:
    cp = ContextParallel(Group(size=2, index=index), "all_gather", balance)
    ours = built(1200, 300, packed(1200), cp)
    theirs = create_block_mask(ours.mask_mod, 2, None, 600, 1200, device="cpu")
    (partial, full), (their_partial, their_full) = kinds(ours), kinds(theirs)
    assert bool((full <= their_full).all())
    assert bool(((partial | full) >= (their_partial | their_full)).all())


def test_nothing_is_made_that_has_an_element_for_every_query_and_key() -> None:
    documents = torch.arange(4096)[None].repeat(2, 1) // 300
    with Largest() as largest:
        built(4096, None, documents)
    assert largest.numel <= 2 * 4096
