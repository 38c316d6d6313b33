"""Are the counts of the published models exact?"""

from __future__ import annotations

from typing import Any

import pytest

from forgeplan.compiler import emit
from forgeplan.compiler.passes.parameters import parameters_of
from tests.compiler.jobs import job, tokens


def shape(dim: int, layers: int, heads: int, kv_heads: int, ffn: int, vocab: int, **more: Any) -> dict[str, Any]:
    fields = {"dim": dim, "layers": layers, "heads": heads, "kv_heads": kv_heads, "ffn": ffn, "vocab": vocab, **more}
    return {f"model.{name}": value for name, value in fields.items()}


PUBLISHED = {
    "Llama-2-7B": (shape(4096, 32, 32, 32, 11_008, 32_000), 6_738_415_616),
    "Llama-2-13B": (shape(5120, 40, 40, 40, 13_824, 32_000), 13_015_864_320),
    "Llama-3-8B": (shape(4096, 32, 32, 8, 14_336, 128_256), 8_030_261_248),
    "Llama-3-70B": (shape(8192, 80, 64, 8, 28_672, 128_256), 70_553_706_496),
    "Llama-3.1-405B": (shape(16_384, 126, 128, 8, 53_248, 128_256), 405_853_388_800),
    "Llama-3.2-1B": (shape(2048, 16, 32, 8, 8192, 128_256, head_dim=64, tie=True), 1_235_814_400),
    "Llama-3.2-3B": (shape(3072, 28, 24, 8, 8192, 128_256, head_dim=128, tie=True), 3_212_749_824),
    "Qwen3-0.6B": (shape(1024, 28, 16, 8, 3072, 151_936, head_dim=128, tie=True, qk_norm=True), 596_049_920),
}
"""Parameters of the published checkpoints."""

TINY = shape(64, 2, 4, 2, 128, 256)


@pytest.mark.parametrize(("changes", "expected"), PUBLISHED.values(), ids=PUBLISHED)
def test_published_models_have_their_published_number_of_parameters(changes: dict[str, Any], expected: int) -> None:
    made = job(changes)
    assert made.derived["model.params"] == expected
    assert emit(made).estimates.num_parameters == expected


@pytest.mark.parametrize(
    ("changes", "expected"),
    [({}, 106_816), ({"model.mlp": "gelu"}, 90_432), ({"model.qk_norm": True}, 106_880)],
    ids=["swiglu", "gelu", "q/k norm"],
)
def test_ungated_mlps_and_head_norms_are_counted(changes: dict[str, Any], expected: int) -> None:
    """Case C029."""
    assert job({**TINY, **changes}).derived["model.params"] == expected


def test_the_published_flops_per_token_come_out() -> None:
    """Llama-3-8B: 51.47 GFLOP at 4,096 tokens and 57.91 at 8,192, all of attention counted; 48.25 and 51.47 by half."""
    short = emit(job()).estimates
    long = emit(job({"batch.length": 8192, "model.context": 8192, "batch.micro": 2})).estimates
    found = [short.flops_per_token, short.flops_per_token_causal, long.flops_per_token, long.flops_per_token_causal]
    assert [round(n / 1e9, 2) for n in found] == [51.47, 48.25, 57.91, 51.47]


def test_a_tied_head_takes_part_in_products_and_is_stored_once() -> None:
    tied, apart = (parameters_of(job({**TINY, "model.tie": tie}).blocks["model"]) for tie in (True, False))
    assert apart.num_total - tied.num_total == 256 * 64
    assert apart.num_matmul == tied.num_matmul


def test_batch_arithmetic_counts_data_ranks_only() -> None:
    made = job({"batch.global": tokens(64 * 1024), "batch.micro": 2, "batch.length": 1024})
    assert (made.derived["mesh.data_ranks"], made.leaves["batch.accumulation"].value) == (4, 8)
    assert (made.derived["batch.sequences"], made.derived["batch.tokens"]) == (64, 65_536)


def test_the_last_step_of_a_token_budget_is_whole() -> None:
    assert job({"budget.tokens": 1_000_000_007}).leaves["budget.steps"].value == 477  # 476.84 steps of 2 Mi tokens
