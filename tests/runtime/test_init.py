"""Are initial values a function of seed, name and shape alone, and is nothing left out?"""

from __future__ import annotations

from hashlib import sha256
from math import log, sqrt
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from forgeplan.diagnostics.refusal import InternalError
from forgeplan.runtime.executor import build
from forgeplan.runtime.init import initialise
from forgeplan.runtime.loss import forward_loss
from forgeplan.runtime.model.decoder import Transformer
from forgeplan.runtime.model.linear import Linear
from forgeplan.runtime.model.module import Module
from tests.runtime.model.test_names import VARIANTS
from tests.runtime.tiny import TinyData, decoder, execution_plan

CPU = torch.device("cpu")


@pytest.mark.parametrize("fields", VARIANTS, ids=str)
def test_memory_full_of_nan_is_overwritten_everywhere(fields: dict[str, Any]) -> None:
    plan = execution_plan(model=decoder(**fields))
    model = build(plan, CPU).model
    tensors = [*model.named_parameters(), *model.named_buffers()]
    with torch.no_grad():
        for _, tensor in tensors:
            tensor.fill_(float("nan"))
    initialise(model, seed=0)
    spec = plan.job.model
    roles = {p.name: p.role for p in (*spec.parameters(), *spec.buffers())}
    constants = {"norm": 1, "bias": 0, "buffer": 0}
    for name, tensor in tensors:
        assert tensor.isfinite().all(), name
        if roles[name] in constants:
            assert (tensor == constants[roles[name]]).all(), name


def test_matrices_are_normal_and_outputs_into_the_residual_stream_smaller() -> None:
    """std 0.02, and 0.02/√(2·layers) for attention and MLP outputs (GPT-2)."""
    spec = decoder(layers=2, dim=128, heads=4, head_dim=32, ffn=384, vocab=256)
    model = Transformer(spec)
    initialise(model, seed=1)
    roles = {p.name: p.role for p in spec.parameters()}
    for name, p in model.named_parameters():
        if p.dim() == 2:
            std = 0.02 / sqrt(4) if roles[name] == "residual" else 0.02
            assert p.std().item() == pytest.approx(std, rel=0.03), name
            assert abs(p.mean().item()) < 4 * std / sqrt(p.numel()), name


def test_the_first_loss_is_that_of_guessing() -> None:
    plan = execution_plan(model=decoder(vocab=256, dim=64, head_dim=16, ffn=192), length=64)
    bundle = build(plan, CPU)
    sums = forward_loss(bundle, TinyData(plan).microbatch(0), None)
    assert (sums.loss / sums.counted).item() == pytest.approx(log(256), abs=0.1)


def test_values_are_drawn_block_by_block_from_a_key_of_seed_and_name() -> None:
    """300 rows of 512: blocks of 128 rows, each from Philox keyed by sha256("seed|name|block")."""
    model = nn.ModuleDict({"matrix": Linear(512, 300, bias=False, std=0.5)})
    initialise(model, seed=9)
    expected = []
    for block, rows in enumerate((128, 128, 44)):
        key = int.from_bytes(sha256(f"9|matrix.weight|{block}".encode()).digest()[:16])
        generator = np.random.Generator(np.random.Philox(key=key))
        expected.append(generator.standard_normal((rows, 512), dtype=np.float32))
    assert np.array_equal(model["matrix"].weight.detach().numpy(), np.concatenate(expected) * np.float32(0.5))


def test_layers_get_the_same_values_whatever_is_built_around_them() -> None:
    small, large = Transformer(decoder(layers=2)), Transformer(decoder(layers=2, tie=True, vocab=50))
    initialise(small, seed=1)
    initialise(large, seed=1)
    assert torch.equal(small.layers["1"].mlp.w_up.weight, large.layers["1"].mlp.w_up.weight)
    initialise(large, seed=2)
    assert not torch.equal(small.layers["1"].mlp.w_up.weight, large.layers["1"].mlp.w_up.weight)


def test_a_parameter_without_a_declaration_is_named() -> None:
    class Undeclared(Module):
        def __init__(self) -> None:
            super().__init__()
            self.scale = nn.Parameter(torch.empty(3))

    with pytest.raises(InternalError, match=r"Undeclared does not say how part\.scale is initialised"):
        initialise(nn.ModuleDict({"part": Undeclared()}), seed=0)
