"""Does the decoder compute what transformers' models compute with the same weights?

Tiny random weights; a foreign implementation is the only reference here.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest
import torch

from forgeplan.runtime.init import initialise
from forgeplan.runtime.model.decoder import Transformer
from forgeplan.runtime.model.rope import scaled_frequencies
from forgeplan.spec.model.decoder import Decoder, Rope
from forgeplan.spec.rope_scaling.scalings import Linear, Llama3, Ntk, Yarn
from tests.runtime.tiny import decoder

transformers = pytest.importorskip("transformers")

NAMES = {
    "embedding.": "model.embed_tokens.", "layers.": "model.layers.", "norm.": "model.norm.", "head.": "lm_head.",
    ".attention_norm.": ".input_layernorm.", ".mlp_norm.": ".post_attention_layernorm.",
    ".attention.wq": ".self_attn.q_proj", ".attention.wk": ".self_attn.k_proj", ".attention.wv": ".self_attn.v_proj",
    ".attention.wo": ".self_attn.o_proj", ".attention.q_norm": ".self_attn.q_norm",
    ".attention.k_norm": ".self_attn.k_norm", ".w_gate": ".gate_proj", ".w_up": ".up_proj", ".w_down": ".down_proj",
}  # fmt: skip


def foreign_name(name: str) -> str:
    for ours, theirs in NAMES.items():
        if ours.startswith("."):
            name = name.replace(ours, theirs)
        elif name.startswith(ours):
            name = theirs + name.removeprefix(ours)
    return name


def shared_config(spec: Decoder) -> dict[str, Any]:
    return {
        "vocab_size": spec.vocab, "hidden_size": spec.dim, "intermediate_size": spec.ffn,
        "num_hidden_layers": spec.layers, "num_attention_heads": spec.heads, "num_key_value_heads": spec.kv_heads,
        "head_dim": spec.head_dim, "max_position_embeddings": spec.context, "rms_norm_eps": float(spec.norm_eps),
        "tie_word_embeddings": spec.tie, "attn_implementation": "eager",
    }  # fmt: skip


def rope_config(spec: Decoder) -> dict[str, Any]:
    theta, scaling = float(spec.rope.theta), spec.rope.scaling
    named: dict[str, Any] = {"rope_type": "default", "rope_theta": theta}
    if isinstance(scaling, Linear):
        named |= {"rope_type": "linear", "factor": float(scaling.factor)}
    if isinstance(scaling, Ntk):
        named |= {"rope_type": "dynamic", "factor": float(scaling.factor)}
    if isinstance(scaling, Yarn):
        named |= {
            "rope_type": "yarn", "factor": float(scaling.factor), "original_max_position_embeddings": scaling.original,
            "beta_fast": float(scaling.fast), "beta_slow": float(scaling.slow),
        }  # fmt: skip
    if isinstance(scaling, Llama3):
        named |= {
            "rope_type": "llama3", "factor": float(scaling.factor), "low_freq_factor": float(scaling.low),
            "high_freq_factor": float(scaling.high), "original_max_position_embeddings": scaling.original,
        }  # fmt: skip
    return {"rope_parameters": named}


def logits_of_both(spec: Decoder, theirs: Any, ids: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    ours = Transformer(spec)
    initialise(ours, seed=5)
    random = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for p in ours.parameters():
            p.add_(torch.randn(p.shape, generator=random) * 0.1)
    weights = {foreign_name(name): p.detach().clone() for name, p in ours.named_parameters()}
    missing, unexpected = theirs.load_state_dict(weights, strict=False)
    assert (missing, unexpected) == (["lm_head.weight"] if spec.tie else [], [])
    theirs.tie_weights()
    with torch.no_grad():
        return ours(ids).logits_BSV, theirs.eval()(ids).logits


IDS = torch.randint(29, (2, 40), generator=torch.Generator().manual_seed(1))
SCALINGS = {
    "none": None,
    "linear": Linear(factor=Fraction(4)),
    "yarn": Yarn(factor=Fraction(4), original=16, fast=Fraction(32), slow=Fraction(1)),
    "llama3": Llama3(factor=Fraction(8), low=Fraction(1), high=Fraction(4), original=16),
}


@pytest.mark.parametrize("scaling", SCALINGS)
@pytest.mark.parametrize("tie", [False, True])
def test_logits_equal_those_of_transformers_llama(scaling: str, tie: bool) -> None:
    spec = decoder(dim=64, heads=4, head_dim=16, ffn=96, tie=tie, rope=Rope(Fraction(10_000), SCALINGS[scaling]))
    config = transformers.LlamaConfig(**shared_config(spec), **rope_config(spec))
    ours, theirs = logits_of_both(spec, transformers.LlamaForCausalLM(config), IDS)
    assert theirs.std() > 0.1
    assert torch.allclose(ours, theirs, atol=1e-5)


@pytest.mark.parametrize("kv_heads", [1, 2])
def test_logits_equal_those_of_transformers_qwen3(kv_heads: int) -> None:
    spec = decoder(dim=48, heads=4, kv_heads=kv_heads, head_dim=16, ffn=96, qk_norm=True, norm_eps=Fraction("1e-6"))
    config = transformers.Qwen3Config(**shared_config(spec), **rope_config(spec))
    ours, theirs = logits_of_both(spec, transformers.Qwen3ForCausalLM(config), IDS)
    assert theirs.std() > 0.1
    assert torch.allclose(ours, theirs, atol=1e-5)


WIDE = {
    "linear": Linear(factor=Fraction(4)),
    "ntk": Ntk(factor=Fraction(2), original=64),
    "yarn": Yarn(factor=Fraction(4), original=4096, fast=Fraction(32), slow=Fraction(1)),
    "llama3": Llama3(factor=Fraction(8), low=Fraction(1), high=Fraction(4), original=8192),
}


@pytest.mark.parametrize("scaling", WIDE)
@pytest.mark.parametrize("length", [64, 100])
def test_frequencies_equal_those_of_transformers(scaling: str, length: int) -> None:
    from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS

    spec = decoder(dim=128, heads=1, kv_heads=1, head_dim=128, rope=Rope(Fraction(10_000), WIDE[scaling]))
    config = transformers.LlamaConfig(**shared_config(spec), **rope_config(spec))
    compute = ROPE_INIT_FUNCTIONS[rope_config(spec)["rope_parameters"]["rope_type"]]
    theirs, factor = compute(config, torch.device("cpu"), seq_len=length)
    ours, our_factor = scaled_frequencies(spec.rope, 128, length)
    assert torch.allclose(ours.float(), theirs, rtol=2e-6, atol=0)
    assert our_factor == pytest.approx(factor)
