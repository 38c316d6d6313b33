"""Is exactly what a mode names computed again in backward, and everything else kept?"""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from forgeplan.runtime.data.microbatch import Microbatch
from forgeplan.runtime.executor import build
from forgeplan.runtime.loss import forward_loss
from tests.runtime.tiny import decoder, execution_plan, moe

PRODUCTS = ("aten.mm.default", "aten.addmm.default", "aten.bmm.default")
ATTENTION = "aten._scaled_dot_product_flash_attention_for_cpu.default"
BETWEEN = "aten.silu.default"
LAYERS = 4


class Counts(TorchDispatchMode):
    """How often each operator ran."""

    def __init__(self) -> None:
        super().__init__()
        self.of: Counter[str] = Counter()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.of[str(func)] += 1
        return func(*args, **(kwargs or {}))


def in_backward(mode: str | None, **fields: Any) -> Counter[str]:
    """Operators that the backward pass of a microbatch runs."""
    plan = execution_plan(model=decoder(layers=LAYERS, **fields), recompute=mode)
    bundle = build(plan, torch.device("cpu"))
    tokens = torch.arange(32).view(2, 16) % 29
    found = forward_loss(bundle, Microbatch(tokens, tokens.roll(-1, 1), None, None, 0), None)
    objective = found.objective(torch.tensor(32), 1)
    with Counts() as counts:
        objective.backward()
    return counts.of


def products(counts: Counter[str]) -> int:
    return sum(counts[name] for name in PRODUCTS)


@pytest.mark.parametrize("fields", [{}, {"moe": moe(shared=1)}], ids=["dense", "experts"])
def test_selective_computes_again_what_lies_between_products_and_attention(fields: dict[str, Any]) -> None:
    kept, again, whole = (in_backward(mode, **fields) for mode in (None, "selective", "full"))
    assert products(again) == products(kept) < products(whole)
    assert again[ATTENTION] == kept[ATTENTION] == 0
    assert whole[ATTENTION] == LAYERS
    assert kept[BETWEEN] == 0
    assert again[BETWEEN] == whole[BETWEEN] >= LAYERS


def test_every_second_block_is_computed_again() -> None:
    assert in_backward("every")[ATTENTION] == LAYERS // 2
