"""Does a decoder with experts compute what foreign ones compute with the same weights?

transformers' Mixtral and Qwen3-MoE, and the layer of its DeepSeek-V3; tiny random weights.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest
import torch
from torch import Tensor

from forgeplan.runtime.init import initialise
from forgeplan.runtime.model.decoder import Transformer
from forgeplan.spec.model.decoder import Decoder
from forgeplan.spec.router.routers import SoftmaxTopk
from tests.runtime.model.moe.layers import layer, moe, sigmoid, tokens
from tests.runtime.model.test_transformers import IDS, foreign_name, rope_config, shared_config
from tests.runtime.tiny import decoder

transformers = pytest.importorskip("transformers")


def foreign_weights(ours: Transformer) -> dict[str, Tensor]:
    """Theirs have gate and up projections of all experts in one stack, gates first."""
    weights = {name.replace(".moe.", ".mlp."): p.detach().clone() for name, p in ours.named_parameters()}
    for name in [name for name in weights if name.endswith("experts.w_gate")]:
        at = name.removesuffix("w_gate")
        weights[f"{at}gate_up_proj"] = torch.cat([weights.pop(name), weights.pop(f"{at}w_up")], 1)
    return {foreign_name(name).replace(".router.", ".gate."): weight for name, weight in weights.items()}


def logits_of_both(spec: Decoder, theirs: Any) -> tuple[Tensor, Tensor]:
    ours = Transformer(spec)
    initialise(ours, seed=5)
    random = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for p in ours.parameters():
            p.add_(torch.randn(p.shape, generator=random) * 0.1)
    assert theirs.load_state_dict(foreign_weights(ours), strict=False) == ([], [])
    with torch.no_grad():
        return ours(IDS).logits_BSV, theirs.eval()(IDS).logits


def test_logits_equal_those_of_transformers_mixtral() -> None:
    spec = decoder(dim=64, heads=4, head_dim=16, ffn=96, moe=moe(experts=8, top_k=2, ffn=96))
    config = transformers.MixtralConfig(
        **shared_config(spec), **rope_config(spec), num_local_experts=8, num_experts_per_tok=2
    )
    ours, theirs = logits_of_both(spec, transformers.MixtralForCausalLM(config))
    assert theirs.std() > 0.1
    assert torch.allclose(ours, theirs, atol=1e-4, rtol=0)


@pytest.mark.parametrize("renormalise", [True, False], ids=["renormalised", "as_they_are"])
def test_logits_equal_those_of_transformers_qwen3_moe(renormalise: bool) -> None:
    """Every other layer has experts, four of each token; a narrow expert beside a wide dense MLP."""
    experts = moe(experts=8, top_k=4, ffn=32, every=2, router=SoftmaxTopk(renormalise=renormalise))
    spec = decoder(layers=4, dim=48, heads=4, head_dim=16, ffn=96, qk_norm=True, norm_eps=Fraction("1e-6"), moe=experts)
    config = transformers.Qwen3MoeConfig(
        **shared_config(spec), **rope_config(spec), num_experts=8, num_experts_per_tok=4, moe_intermediate_size=32,
        decoder_sparse_step=2, norm_topk_prob=renormalise, mlp_only_layers=[],
    )  # fmt: skip
    ours, theirs = logits_of_both(spec, transformers.Qwen3MoeForCausalLM(config))
    assert theirs.std() > 0.1
    assert torch.allclose(ours, theirs, atol=1e-4, rtol=0)


def test_a_layer_equals_that_of_transformers_deepseek_v3() -> None:
    """Sigmoid scores with a bias on the choice, groups of experts, scaled gates, shared experts."""
    from transformers.models.deepseek_v3.modeling_deepseek_v3 import DeepseekV3MoE

    ours = layer(
        moe(experts=8, top_k=3, ffn=8, shared=2, groups=4, group_limit=2, router=sigmoid("2.5")), dtype=torch.float32
    )
    ours.router.bias.copy_(torch.linspace(-0.2, 0.2, 8))
    config = transformers.DeepseekV3Config(
        hidden_size=16, moe_intermediate_size=8, n_routed_experts=8, num_experts_per_tok=3, n_shared_experts=2,
        n_group=4, topk_group=2, norm_topk_prob=True, routed_scaling_factor=2.5,
    )  # fmt: skip
    theirs = DeepseekV3MoE(config)
    stacks = ours.experts
    weights = {
        "gate.weight": ours.router.weight,
        "gate.e_score_correction_bias": ours.router.bias,
        "experts.gate_up_proj": torch.cat([stacks.w_gate, stacks.w_up], 1),
        "experts.down_proj": stacks.w_down,
        "shared_experts.gate_proj.weight": ours.shared.w_gate.weight,
        "shared_experts.up_proj.weight": ours.shared.w_up.weight,
        "shared_experts.down_proj.weight": ours.shared.w_down.weight,
    }
    assert theirs.load_state_dict({name: w.detach() for name, w in weights.items()}, strict=False) == ([], [])
    x = tokens(batch=4).float()
    with torch.no_grad():
        assert torch.allclose(ours(x)[0], theirs.eval()(x), atol=1e-5, rtol=0)
