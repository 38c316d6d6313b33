"""How many parameters does a published shape have? Counted here without the schema."""

from __future__ import annotations


def count(
    dim: int,
    layers: int,
    heads: int,
    kv_heads: int,
    ffn: int,
    vocab: int,
    head_dim: int = 0,
    tied: bool = False,
    qk_norm: bool = False,
    gated: bool = True,
    layer_norm: bool = False,
    experts: int = 0,
    expert_ffn: int = 0,
    shared: int = 0,
    every: int = 1,
) -> int:
    """Parameters of a decoder without biases in its matrices."""
    width = head_dim or dim // heads
    norm = dim * (2 if layer_norm else 1)
    attention = 2 * dim * heads * width + 2 * dim * kv_heads * width + (2 * width if qk_norm else 0)
    matrices = 3 if gated else 2
    dense = matrices * dim * ffn
    sparse = experts * dim + (experts + shared) * matrices * dim * (expert_ffn or ffn)
    with_experts = layers // every if experts else 0
    blocks = layers * (attention + 2 * norm) + (layers - with_experts) * dense + with_experts * sparse
    return blocks + norm + vocab * dim * (1 if tied else 2)
