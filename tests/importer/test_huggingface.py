"""Does a config.json become a model with the same shape, and does what has no equivalent say so?"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from forgeplan.importer.convert import convert
from forgeplan.importer.report import Outcome
from forgeplan.importer.rules import Options
from forgeplan.importing import Checked, import_plan
from forgeplan.spec.rope_scaling.scalings import Linear, Ntk, Yarn
from tests.importer.test_configs import CONFIGS, job_of

PUBLISHED = {
    "llama31_8b": 8_030_261_248,
    "llama32_1b_v5": 1_235_814_400,
    "mistral_7b": 7_241_732_096,
    "mixtral_8x7b": 46_702_792_704,
    "qwen3_0_6b": 596_049_920,
    "qwen3_30b_a3b": 30_532_122_624,
}
"""Totals of the published weights."""
TINY = {
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "num_hidden_layers": 2,
    "vocab_size": 128,
    "max_position_embeddings": 256,
}
FAMILIES: dict[str, dict[str, Any]] = {
    "llama": {},
    "mistral": {"sliding_window": 32},
    "mixtral": {"num_local_experts": 4, "num_experts_per_tok": 2},
    "qwen3": {"head_dim": 32, "tie_word_embeddings": True},
    "qwen3_moe": {
        "num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 48, "head_dim": 32, "mlp_only_layers": [0]
    },
}  # fmt: skip


def made(family: str, **keys: Any) -> Checked:
    config = {"model_type": family, **TINY, **FAMILIES.get(family, {}), **keys}
    given = {key: value for key, value in config.items() if value is not ...}
    return import_plan(json.dumps(given), "config.json", Options(cluster="cpu_host"))


def model_of(found: Checked) -> Any:
    plan = job_of(found).plan
    assert plan is not None
    return plan.model


@pytest.mark.parametrize("name", PUBLISHED)
def test_published_models_keep_their_size(name: str) -> None:
    path = CONFIGS / "huggingface" / f"{name}.json"
    found = import_plan(path.read_text(encoding="utf-8"), path.name, Options())
    assert sum(parameter.numel for parameter in model_of(found).parameters()) == PUBLISHED[name]
    keys = [row.key for row in found.imported.report.rows]
    assert len(keys) == len(set(keys))
    assert {key.partition(".")[0] for key in keys} == set(json.loads(path.read_text(encoding="utf-8")))
    assert found.imported.report.of(Outcome.LOST) == ()


def test_both_forms_of_positions_are_read() -> None:
    older = model_of(made("llama", rope_theta=5e5, rope_scaling={"type": "linear", "factor": 4.0}))
    newer = model_of(
        made("llama", rope_parameters={"rope_type": "linear", "rope_theta": 5e5, "factor": 4.0}, rope_theta=1.0)
    )
    assert older.rope == newer.rope
    assert (older.rope.theta, older.rope.scaling) == (500_000, Linear(factor=4))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("scaling", "kind"),
    [
        ({"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 64, "beta_fast": 16.0}, Yarn),
        ({"rope_type": "dynamic", "factor": 2.0}, Ntk),
    ],
)
def test_other_stretchings_keep_their_numbers(scaling: dict[str, Any], kind: type) -> None:
    found = model_of(made("llama", rope_scaling=scaling)).rope.scaling
    assert isinstance(found, kind)
    assert found.factor == scaling["factor"]
    assert found.original == scaling.get("original_max_position_embeddings", 256)


def test_defaults_of_the_family_are_those_of_the_library() -> None:
    llama, mixtral = model_of(made("llama")), model_of(made("mixtral"))
    assert (float(llama.norm_eps), llama.rope.theta, llama.tie) == (1e-6, 10_000, False)
    assert (float(mixtral.norm_eps), mixtral.rope.theta) == (1e-5, 1_000_000)
    assert model_of(made("qwen3", head_dim=...)).head_dim == 128


def test_experts_keep_router_balance_and_dense_layers() -> None:
    moe = model_of(made("qwen3_moe", norm_topk_prob=True, router_aux_loss_coef=0.001)).moe
    assert (moe.router.renormalise, moe.first_dense, moe.every, float(moe.balance)) == (True, 1, 1, 0.002)
    assert model_of(made("qwen3_moe")).moe.router.renormalise is False
    assert model_of(made("mixtral")).moe.router.renormalise is True
    assert model_of(made("qwen3_moe", mlp_only_layers=[], decoder_sparse_step=2)).moe.every == 2
    assert model_of(made("qwen3_moe", num_experts=..., num_local_experts=8)).moe.experts == 8


def test_a_window_is_of_all_layers_or_of_none() -> None:
    assert model_of(made("mistral")).window == 32
    assert model_of(made("mistral", sliding_window=None)).window is None
    assert model_of(made("qwen3", sliding_window=32, use_sliding_window=False)).window is None
    kinds = ["sliding_attention", "sliding_attention"]
    assert model_of(made("mistral", layer_types=kinds)).window == 32


@pytest.mark.parametrize(
    ("family", "keys", "reason"),
    [
        ("qwen2", {}, "biases on queries, keys and values alone"),
        ("deepseek_v3", {}, "multi-head latent attention"),
        ("gemma2", {}, "norms before and after"),
        ("olmo2", {}, "norms come after each part"),
        ("gpt2", {}, "learned positions"),
        ("mamba", {}, "is not known to this importer"),
        ("llama", {"attention_bias": True}, "attention_bias alone has no equivalent"),
        ("llama", {"hidden_act": "relu"}, "hidden_act relu has no equivalent"),
        ("llama", {"rope_scaling": {"rope_type": "longrope", "factor": 4.0}}, "longrope has no equivalent"),
        ("llama", {"partial_rotary_factor": 0.5}, "all of a head is rotated"),
        ("llama", {"vocab_size": ...}, "the file has no vocab_size"),
        ("llama", {"text_config": {"hidden_size": 1}}, "vision towers"),
        ("mistral", {"layer_types": ["full_attention", "sliding_attention"]}, "mixes windows"),
        ("qwen3", {"use_sliding_window": True, "sliding_window": 32, "max_window_layers": 1}, "to some layers"),
        ("qwen3_moe", {"mlp_only_layers": [1]}, "mlp_only_layers has no equivalent"),
    ],
)
def test_a_shape_without_an_equivalent_is_refused_by_name(family: str, keys: dict[str, Any], reason: str) -> None:
    found = made(family, **keys)
    assert found.imported.text is None
    assert any(reason in text for text in found.imported.report.refused)


def test_biases_of_all_linear_layers_are_taken() -> None:
    assert model_of(made("llama", attention_bias=True, mlp_bias=True)).bias is True


def test_a_folder_gives_the_name_of_the_plan() -> None:
    config = json.dumps({"model_type": "llama", **TINY})
    assert convert(config, "models/Llama-3.1-8B/config.json", Options()).report.plan == "llama_3_1_8b"
    assert convert(config, "config.json", Options()).report.plan == "llama"


@pytest.mark.slow
@pytest.mark.parametrize("family", FAMILIES)
def test_the_library_counts_as_many_parameters(family: str, tmp_path: Path) -> None:
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM

    path = tmp_path / "config.json"
    path.write_text(json.dumps({"model_type": family, **TINY, **FAMILIES[family]}), encoding="utf-8")
    with torch.device("meta"):
        theirs = AutoModelForCausalLM.from_config(AutoConfig.from_pretrained(path))
    ours = model_of(made(family)).parameters()
    assert sum(parameter.numel for parameter in ours) == sum(p.numel() for p in theirs.parameters())
