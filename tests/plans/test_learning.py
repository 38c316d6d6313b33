"""Does a plan learn what can be learnt of its data, and nothing more?

From text to the trained model, over the data that training reads: a label that is shifted twice, or not at all, shows.
"""

from __future__ import annotations

from math import log
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest
import torch

from forgeplan.analysis import analyse
from forgeplan.compiler import emit
from forgeplan.runtime.data.train_data import TrainData
from forgeplan.runtime.executor import build
from forgeplan.runtime.operations.fp8 import Float8Product
from forgeplan.runtime.optim.optimizer import build_optimizer
from forgeplan.runtime.state import TrainState
from forgeplan.runtime.train import train
from tests.runtime.tiny import Quiet

CPU = torch.device("cpu")
TINY = """forge 1
plan tiny {{
  cluster = {{ devices_per_node = 1, arch = cpu }}
  model = decoder {{
    dim = 64, layers = 2, heads = 4, kv_heads = 2, ffn = 128, vocab = 256, context = 32 tokens
  }}
  sources = {{ counter = synthetic {{ states = 16, noise = {noise} }} }}
  batch = {{ global = 8 sequences, micro = 2 sequences, length = 32 tokens }}
  optimizer = adamw {{ lr = 3e-3 }}
  schedule = none
  guard = {{ clip = 1 }}
  seed = 17
  budget = {{ steps = {steps} steps }}
  {rest}
}}
"""
BF16 = "precision = { compute = bf16 }"


def trained(folder: Path, noise: str, steps: int, rest: str = "") -> tuple[list[float], Any]:
    """The loss of every step, and the model."""
    analysis = analyse(str(folder / "tiny.forge"), text=TINY.format(noise=noise, steps=steps, rest=rest))
    assert not analysis.errors
    plan = emit(analysis.job("tiny"), sources=analysis.sources)
    assert plan.estimates.num_parameters == 106_816
    bundle, services = build(plan, CPU), Quiet()
    data = TrainData(plan, data_rank=0, project=folder)
    train(plan, bundle, build_optimizer(bundle), data, TrainState(), services)
    data.close()
    return [report.loss for report in services.reports], bundle.model


def test_a_counter_is_learnt_and_goes_on(tmp_path: Path) -> None:
    """C046: the next token is t + 1 mod 16."""
    losses, model = trained(tmp_path, "0%", 200)
    assert losses[-1] < 0.05
    ids = torch.tensor([[3]])
    for _ in range(4):
        ids = torch.cat([ids, model(ids).logits_BSV[:, -1:].argmax(-1)], 1)
    assert ids.tolist() == [[3, 4, 5, 6, 7]]


def test_uniform_tokens_are_not_learnt_beyond_their_entropy(tmp_path: Path) -> None:
    """C046: fresh tokens over 16 in every batch; to see a token would be to get below ln 16 = 2.77."""
    losses, _ = trained(tmp_path, "100%", 200)
    assert min(losses) > log(16) - 0.05
    assert losses[-1] < log(16) + 0.1


def test_float8_learns_what_bf16_learns(tmp_path: Path) -> None:
    """Half of the tokens are noise, so that a loss is left: means of the last 20 of 200 steps."""
    wide, _ = trained(tmp_path, "50%", 200, BF16)
    assert fmean(wide[-20:]) < 0.9 * fmean(wide[:20])
    for recipe in ("tensorwise", "rowwise"):
        float8 = f"apply = [fp8 {{ recipe = {recipe}, small = convert, emulate = true }}]"
        rounded, model = trained(tmp_path, "50%", 200, f"{BF16}\n  {float8}")
        converted = [m for m in model.modules() if isinstance(getattr(m, "product", None), Float8Product)]
        assert len(converted) == 14
        assert rounded != wide
        assert fmean(rounded[-20:]) == pytest.approx(fmean(wide[-20:]), rel=0.01)
