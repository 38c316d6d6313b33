"""Does the model have exactly the parameters that its torch-free description promises?"""

from __future__ import annotations

from typing import Any

import pytest
import torch

from forgeplan.runtime.model.decoder import Transformer
from forgeplan.runtime.model.module import Module
from forgeplan.spec.model.decoder import MLPS
from tests.runtime.model.moe.layers import moe, sigmoid
from tests.runtime.tiny import decoder

VARIANTS: list[dict[str, Any]] = [
    *({"mlp": mlp} for mlp in MLPS),
    {"tie": True},
    {"qk_norm": True},
    {"qk_norm": True, "norm": "layer", "bias": True, "tie": True},
    {"bias": True, "mlp": "gelu"},
    {"pad_vocab": 32},
    {"head_dim": 10, "heads": 3, "kv_heads": 1},
    {"layers": 11},
    {"moe": moe()},
    {"moe": moe(shared=2, router=sigmoid(), every=2), "layers": 4, "mlp": "gelu", "bias": True},
    {"moe": moe(router=sigmoid(), first_dense=1), "layers": 3, "mtp": 2, "tie": True},
    {"mtp": 1, "norm": "layer"},
]


@pytest.mark.parametrize("fields", VARIANTS, ids=str)
def test_names_shapes_and_order_are_those_of_the_description(fields: dict[str, Any]) -> None:
    spec = decoder(**fields)
    with torch.device("meta"):
        model = Transformer(spec)
    built = [(name, tuple(p.shape)) for name, p in model.named_parameters()]
    assert built == [(p.name, p.shape) for p in spec.parameters()]
    kept = [(name, tuple(b.shape)) for name, b in model.named_buffers()]
    assert kept == [(b.name, b.shape) for b in spec.buffers()]


def test_llama_3_8b_has_as_many_parameters_as_published() -> None:
    """8,030,261,248: Llama-3-8B, 4096/32L/32h/8kv/ffn 14336/V 128256."""
    spec = decoder(layers=32, dim=4096, heads=32, kv_heads=8, head_dim=128, ffn=14336, vocab=128256)
    with torch.device("meta"):
        assert sum(p.numel() for p in Transformer(spec).parameters()) == 8_030_261_248


def test_modules_keep_nothing_but_weights() -> None:
    """A second forward finds the same attributes as the first: nothing was left on a module."""
    model = Transformer(decoder(qk_norm=True))
    for p in model.parameters():
        torch.nn.init.normal_(p)
    before = {name: set(vars(m)) for name, m in model.named_modules()}
    tokens = torch.arange(8)[None]
    first = model(tokens).logits_BSV
    assert {name: set(vars(m)) for name, m in model.named_modules()} == before
    assert torch.equal(model(tokens).logits_BSV, first)
    assert not list(model.buffers())


def test_every_unit_of_recompute_is_a_block() -> None:
    model = Transformer(decoder(layers=3))
    units = [name for name, m in model.named_modules() if isinstance(m, Module) and m.recompute_unit]
    assert units == ["layers.0", "layers.1", "layers.2"]
