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


def moe(experts: int, top_k: int, ffn: int, **more: Any) -> dict[str, Any]:
    fields = {"experts": experts, "top_k": top_k, "ffn": ffn, **more}
    return {f"model.moe.{name}": value for name, value in fields.items()}


QWEN3 = {"head_dim": 128, "qk_norm": True}
PUBLISHED_MOE = {
    "Mixtral-8x7B": (
        shape(4096, 32, 32, 8, 14_336, 32_000) | moe(8, 2, 14_336),
        46_702_792_704,
        12_879_925_248,
    ),
    "Qwen3-30B-A3B": (
        shape(2048, 48, 32, 4, 6144, 151_936, **QWEN3) | moe(128, 8, 768),
        30_532_122_624,
        3_353_032_704,
    ),
    "Qwen3-235B-A22B": (
        shape(4096, 94, 64, 4, 12_288, 151_936, **QWEN3) | moe(128, 8, 1536),
        235_093_634_560,
        22_190_763_520,
    ),
}
"""Parameters of the published checkpoints, and those that a token meets."""

TINY = shape(64, 2, 4, 2, 128, 256)
TINY_4 = shape(64, 4, 4, 2, 128, 256)
MLP = 3 * 64 * 128


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


@pytest.mark.parametrize(("changes", "total", "active"), PUBLISHED_MOE.values(), ids=PUBLISHED_MOE)
def test_published_mixtures_have_their_published_numbers(changes: dict[str, Any], total: int, active: int) -> None:
    """Case C029 for the largest."""
    made = job(changes)
    assert (made.derived["model.params"], made.derived["model.active_params"]) == (total, active)


@pytest.mark.parametrize(
    ("changes", "total", "active"),
    [
        (TINY_4 | moe(8, 2, 64, every=2, shared=2), 378_432, 230_976),
        (TINY_4 | moe(8, 2, 64, first_dense=1, shared=1), 440_384, 219_200),
    ],
    ids=["every second layer", "all but the first"],
)
def test_shared_experts_are_counted_where_the_layer_has_them(changes: dict[str, Any], total: int, active: int) -> None:
    """Case C029."""
    made = job(changes)
    assert (made.derived["model.params"], made.derived["model.active_params"]) == (total, active)


def test_experts_have_no_biases_and_a_gate_only_where_the_mlp_has_one() -> None:
    changes = {**TINY, **moe(8, 2, 64, shared=1), "model.mlp": "gelu", "model.bias": True}
    names = [p.name for p in parameters_of(job(changes).blocks["model"]).all]
    assert [n.removeprefix("layers.1.moe.") for n in names if n.startswith("layers.1.moe.")] == [
        "router.weight", "experts.w_up", "experts.w_down", "shared.w_up.weight", "shared.w_down.weight",
    ]  # fmt: skip
    assert "layers.1.attention.wo.bias" in names


def test_layers_have_experts_by_their_number() -> None:
    """The block of a module of multi-token prediction counts on behind the layers."""
    made = job({**TINY_4, **moe(8, 2, 64, every=2, first_dense=2), "model.mtp": 2}).blocks["model"]
    assert [made.is_moe(i) for i in range(4)] == [False, False, False, True]
    names = {p.name for p in made.parameters()}
    assert "mtp.0.block.mlp.w_up.weight" in names
    assert "mtp.1.block.moe.router.weight" in names


def test_modules_of_multi_token_prediction_are_stored_and_not_active() -> None:
    plain, more = (parameters_of(job({**TINY, "model.mtp": n}).blocks["model"]) for n in (0, 2))
    attention = 2 * 64 * 64 + 2 * 32 * 64
    norms, projection = 5 * 64, 2 * 64 * 64
    assert more.num_total - plain.num_total == 2 * (attention + MLP + projection + norms)
    assert more.num_active == plain.num_active == 106_816
    head = 256 * 64
    assert more.num_matmul - plain.num_matmul == 2 * (attention + MLP + projection + head)


def test_a_token_multiplies_with_the_experts_it_is_sent_to() -> None:
    dense, sparse = (parameters_of(job({**TINY, **m}).blocks["model"]) for m in ({}, moe(8, 2, 64, shared=1)))
    expert = 3 * 64 * 64
    assert sparse.num_matmul - dense.num_matmul == 2 * (3 * expert + 8 * 64 - MLP)


def test_each_module_of_multi_token_prediction_attends_once_more() -> None:
    plain, more = (job({**TINY, "model.mtp": n}).blocks["model"] for n in (0, 1))
    products = 6 * (more.num_matmul_parameters() - plain.num_matmul_parameters())
    assert more.flops_per_token(1000) - plain.flops_per_token(1000) == products + 12 * 4 * 16 * 1000


def test_the_bias_that_balances_is_state_and_no_parameter() -> None:
    sigmoid = moe(8, 2, 64, every=2, router="sigmoid_topk")
    model = job({**TINY, **sigmoid, "model.mtp": 2}).blocks["model"]
    found = [(b.name, b.shape) for b in model.buffers()]
    assert found == [("layers.1.moe.router.bias", (8,)), ("mtp.1.block.moe.router.bias", (8,))]
    assert not {name for name, _ in found} & {p.name for p in model.parameters()}
    assert not list(job({**TINY, **moe(8, 2, 64)}).blocks["model"].buffers())


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
