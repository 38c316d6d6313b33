"""Which shapes do the flavors of torchtitan's models have? (Its model arguments, up to release 0.2.)"""

from __future__ import annotations

from collections.abc import Mapping

from attrs import frozen

LLAMA3_ORIGINAL = 8192
"""Tokens from which the positions of Llama 3.1 are stretched."""
LLAMA3_DEBUG = {
    "layers": "6",
    "dim": "256",
    "heads": "16",
    "ffn": "768",
    "vocab": "2048",
    "rope.theta": "500_000",
    "rope.scaling": "llama3 { factor = 8, original = 8Ki tokens }",
}
QWEN3_DEBUG = {
    "layers": "8",
    "dim": "256",
    "heads": "16",
    "kv_heads": "8",
    "head_dim": "128",
    "vocab": "2048",
    "qk_norm": "true",
    "norm_eps": "1e-6",
    "rope.theta": "1_000_000",
}
LIBRARY: Mapping[tuple[str, str], str] = {
    ("llama3", "8B"): "llama31_8b",
    ("llama3", "70B"): "llama31_70b",
    ("llama3", "405B"): "llama31_405b",
    ("qwen3", "0.6B"): "qwen3_0_6b",
    ("qwen3", "1.7B"): "qwen3_1_7b",
    ("qwen3", "4B"): "qwen3_4b",
    ("qwen3", "8B"): "qwen3_8b",
    ("qwen3", "14B"): "qwen3_14b",
    ("qwen3", "32B"): "qwen3_32b",
    ("qwen3", "30B-A3B"): "qwen3_30b_a3b",
    ("qwen3", "235B-A22B"): "qwen3_235b_a22b",
}
"""Flavors that are published models: the names of `std:models`."""
SHAPES: Mapping[tuple[str, str], Mapping[str, str]] = {
    ("llama3", "debugmodel"): LLAMA3_DEBUG,
    ("qwen3", "debugmodel"): {**QWEN3_DEBUG, "ffn": "3072", "tie": "true"},
    ("qwen3", "debugmodel_moe"): {
        **QWEN3_DEBUG,
        "ffn": "3072",
        "moe.experts": "64",
        "moe.top_k": "8",
        "moe.ffn": "768",
    },
}
AMENDED: Mapping[tuple[str, str], Mapping[str, str]] = {
    # No balance loss is added there.
    ("qwen3", "30B-A3B"): {"moe.balance": "0"},
    ("qwen3", "235B-A22B"): {"moe.balance": "0", "rope.theta": "5_000_000"},
}
"""Where a flavor differs from the published model in more than its context."""
SUFFIXES = {"_flex": "flex", "_flex_attn": "flex", "_varlen": "auto", "_varlen_attn": "auto"}
"""Flavors that keep documents apart, with our attention backend."""
REFUSED = {
    "deepseek_v3": "its multi-head latent attention has no equivalent: keys and values are compressed into one vector"
    " that no field here describes (std:models has deepseek_v3_like, with grouped-query attention)",
    "llama4": "its attention in chunks, with layers that have no rotary positions, has no equivalent",
    "gpt_oss": "its attention sinks, and layers that alternate between a window and the whole sequence, have no"
    " equivalent",
    "flux": "a diffusion model is no decoder of tokens",
    "llama3_ft": "name the model it extends, `llama3`: fault tolerance by torchft has no equivalent",
    "llama3_simple_fsdp": "name the model it extends, `llama3`: the sharding is the layout's business here",
    "qwen3_vl": "there are no vision towers in this version",
}


@frozen
class Flavor:
    """A model as statements: a name of `std:models` or `decoder`, with fields."""

    base: str
    fields: Mapping[str, str]
    attention: str = ""
    packs: bool = False


def flavor_of(name: str, flavor: str) -> Flavor | None:
    """What a flavor is; None where the importer does not know it."""
    for suffix, attention in SUFFIXES.items():
        plain = flavor.removesuffix(suffix)
        if plain != flavor and (found := flavor_of(name, plain)) is not None:
            return Flavor(found.base, found.fields, "" if attention == "auto" else attention, packs=True)
    if (name, flavor) in LIBRARY:
        return Flavor(LIBRARY[name, flavor], AMENDED.get((name, flavor), {}))
    shape = SHAPES.get((name, flavor))
    return Flavor("decoder", shape) if shape is not None else None


def flavors_of(name: str) -> list[str]:
    return [flavor for model, flavor in (*SHAPES, *LIBRARY) if model == name]
