"""What is a decoder-only transformer, as far as names, shapes and arithmetic go?"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from math import prod
from typing import Any

from attrs import frozen

from forgeplan.spec import types as t
from forgeplan.spec.registry import component
from forgeplan.spec.setting import Change, setting

MLPS = ("swiglu", "geglu", "gelu", "relu", "relu2")
GATED = ("swiglu", "geglu")
ATTENTIONS = ("auto", "flash", "efficient", "cudnn", "math", "flex")


@frozen
class Rope:
    """Rotary position embedding (Su et al., 2021), half-split layout."""

    theta: Fraction = setting(t.REAL, "base of the frequencies", default="10_000", within="(0, )")
    scaling: Any = setting(t.optional(t.Component("rope_scaling")), "stretching of the positions", default="none")


@component("model", "decoder")
@frozen
class Decoder:
    """Decoder-only: norms before each part, rotary positions, grouped-query attention, gated or plain MLP."""

    layers: int = setting(
        t.COUNT,
        "transformer blocks",
        within="[1, 10000]",
        example="32",
        aliases=("num_layers", "num_hidden_layers", "n_layer", "n_layers"),
    )
    dim: int = setting(
        t.COUNT,
        "width of the residual stream",
        within="[1, )",
        example="4096",
        aliases=("hidden_size", "d_model", "n_embd"),
    )
    heads: int = setting(
        t.COUNT,
        "query heads",
        within="[1, )",
        example="32",
        aliases=("num_heads", "num_attention_heads", "n_head", "n_heads"),
    )
    vocab: int = setting(t.COUNT, "token ids", within="[1, )", example="32_000", aliases=("vocab_size",))
    context: int = setting(
        t.TOKEN_COUNT,
        "longest sequence",
        within="[1, )",
        change=Change.RESUMABLE,
        example="4Ki tokens",
        aliases=("seq_len", "max_seq_len", "max_position_embeddings", "context_length"),
    )
    kv_heads: int = setting(
        t.COUNT,
        "key and value heads",
        default="self.heads",
        within="[1, )",
        aliases=("num_kv_heads", "num_key_value_heads", "n_kv_heads"),
    )
    head_dim: int = setting(t.COUNT, "width of one head", default="self.dim / self.heads", within="[1, )")
    ffn_multiplier: Fraction = setting(
        t.REAL, "factor on 8/3·dim for the hidden width of the MLP, rounded up to 256", default="1", within="(0, )"
    )
    ffn: int = setting(
        t.COUNT,
        "hidden width of the MLP",
        default="256 * ceil(floor(8 / 3 * self.dim * self.ffn_multiplier) / 256)",
        within="[1, )",
        aliases=("intermediate_size", "ffn_dim", "d_ff"),
    )
    mlp: str = setting(t.OneOf(MLPS), "kind of MLP", default="swiglu")
    rope: Rope = setting(t.Block(Rope), "rotary positions", default="{}")
    norm: str = setting(t.OneOf(("rms", "layer")), "kind of normalisation", default="rms")
    norm_eps: Fraction = setting(t.REAL, "added to the variance in every norm", default="1e-5", within="(0, )")
    qk_norm: bool = setting(t.Bool(), "normalise queries and keys per head", default="false")
    bias: bool = setting(t.Bool(), "biases in all linear layers of the blocks", default="false")
    tie: bool = setting(t.Bool(), "embedding and head are one tensor", default="false")
    window: int | None = setting(
        t.optional(t.TOKEN_COUNT), "keys a query can see, itself included", default="none", within="[1, )"
    )
    softcap: Fraction | None = setting(
        t.optional(t.REAL), "attention logits become cap·tanh(x/cap)", default="none", within="(0, )"
    )
    dropout: Fraction = setting(
        t.REAL, "probability of dropping an output of attention or MLP", default="0", within="[0, 1)"
    )
    init_std: Fraction = setting(t.REAL, "standard deviation of initial weights", default="0.02", within="(0, )")
    pad_vocab: int = setting(
        t.or_auto(t.COUNT), "rows of embedding and head, those above `vocab` masked", default="auto", within="[1, )"
    )
    attention: str = setting(t.OneOf(ATTENTIONS), "attention backend", default="auto", change=Change.RESUMABLE)

    def parameters(self) -> Iterator[Parameter]:
        """Every stored parameter with its full name and global shape, in the order of the modules."""
        d, q, kv, h = self.dim, self.heads * self.head_dim, self.kv_heads * self.head_dim, self.ffn
        yield Parameter("embedding.weight", (self.pad_vocab, d), "embedding")
        for i in range(self.layers):
            at = f"layers.{i}"
            yield from self._norm(f"{at}.attention_norm", d)
            yield from self._linear(f"{at}.attention.wq", q, d)
            yield from self._linear(f"{at}.attention.wk", kv, d)
            yield from self._linear(f"{at}.attention.wv", kv, d)
            if self.qk_norm:
                yield from self._norm(f"{at}.attention.q_norm", self.head_dim)
                yield from self._norm(f"{at}.attention.k_norm", self.head_dim)
            yield from self._linear(f"{at}.attention.wo", d, q, residual=True)
            yield from self._norm(f"{at}.mlp_norm", d)
            if self.mlp in GATED:
                yield from self._linear(f"{at}.mlp.w_gate", h, d)
            yield from self._linear(f"{at}.mlp.w_up", h, d)
            yield from self._linear(f"{at}.mlp.w_down", d, h, residual=True)
        yield from self._norm("norm", d)
        if not self.tie:
            yield Parameter("head.weight", (self.pad_vocab, d), "head")

    def _norm(self, name: str, dim: int) -> Iterator[Parameter]:
        yield Parameter(f"{name}.weight", (dim,), "norm")
        if self.norm == "layer":
            yield Parameter(f"{name}.bias", (dim,), "bias")

    def _linear(self, name: str, rows: int, columns: int, residual: bool = False) -> Iterator[Parameter]:
        yield Parameter(f"{name}.weight", (rows, columns), "residual" if residual else "linear")
        if self.bias:
            yield Parameter(f"{name}.bias", (rows,), "bias")

    def num_matmul_parameters(self) -> int:
        """Parameters that take part in matrix products: all matrices but the input embedding; a tied head counts."""
        matrices = sum(p.numel for p in self.parameters() if p.role in ("linear", "residual", "head"))
        return matrices + (self.pad_vocab * self.dim if self.tie else 0)

    def flops_per_token(self, length: int) -> int:
        """Forward and backward, attention counted without the causal half: 6·N + 12·L·H·d_head·S (PaLM, appendix B)."""
        return 6 * self.num_matmul_parameters() + 12 * self.layers * self.heads * self.head_dim * length


@frozen
class Parameter:
    """`role` is one of embedding, head, linear, residual (output projections into the residual stream), norm, bias."""

    name: str
    shape: tuple[int, ...]
    role: str

    @property
    def numel(self) -> int:
        return prod(self.shape)
