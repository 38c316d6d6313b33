"""What is a decoder-only transformer, as far as names, shapes and arithmetic go?"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Any

from attrs import frozen

from forgeplan.spec import types as t
from forgeplan.spec.cut import COLUMN, PER_HEAD, PER_TOKEN, ROW, Cut, key_value
from forgeplan.spec.model.moe import Moe
from forgeplan.spec.model.parameter import Parameter
from forgeplan.spec.registry import component
from forgeplan.spec.setting import Change, setting

MLPS = ("swiglu", "geglu", "gelu", "relu", "relu2")
GATED = ("swiglu", "geglu")
EXPERT_STACKS = ("experts", "experts_residual")
MATRICES = ("linear", "residual", "router", *EXPERT_STACKS)
"""Roles of what multiplies the residual stream inside the blocks."""
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
        t.or_auto(t.COUNT),
        "rows of embedding and head, those above `vocab` masked",
        default="auto",
        within="[1, )",
        change=Change.RESUMABLE,
    )
    attention: str = setting(t.OneOf(ATTENTIONS), "attention backend", default="auto", change=Change.RESUMABLE)
    mtp: int = setting(
        t.COUNT,
        "modules behind the layers that predict one token further each (DeepSeek-V3, section 2.2)",
        default="0",
        within="[0, 64]",
        aliases=("num_nextn_predict_layers",),
    )
    moe: Moe | None = setting(t.optional(t.Block(Moe)), "experts in place of the MLP", default="none")

    def is_moe(self, layer: int) -> bool:
        """Whether a layer has experts. The block of multi-token prediction module k counts as layer `layers + k`."""
        return self.moe is not None and self.moe.is_at(layer)

    def parameters(self) -> Iterator[Parameter]:
        """Every stored parameter with its full name and global shape, in the order of the modules."""
        d = self.dim
        yield Parameter("embedding.weight", (self.pad_vocab, d), "embedding", COLUMN)
        for i in range(self.layers):
            yield from self._block(f"layers.{i}", i)
        for k in range(self.mtp):
            yield from self._norm(f"mtp.{k}.embedding_norm", d)
            yield from self._norm(f"mtp.{k}.hidden_norm", d)
            yield Parameter(f"mtp.{k}.projection.weight", (d, 2 * d), "linear", PER_TOKEN)
            yield from self._block(f"mtp.{k}.block", self.layers + k)
            yield from self._norm(f"mtp.{k}.norm", d)
        yield from self._norm("norm", d)
        if not self.tie:
            yield Parameter("head.weight", (self.pad_vocab, d), "head", COLUMN)

    def buffers(self) -> Iterator[Parameter]:
        """State that no gradient changes and checkpoints keep; it enters no count of parameters."""
        if self.moe is None:
            return
        blocks = [f"layers.{i}" for i in range(self.layers)] + [f"mtp.{k}.block" for k in range(self.mtp)]
        for layer, at in enumerate(blocks):
            if self.is_moe(layer):
                yield from self.moe.buffers(f"{at}.moe")

    def _block(self, at: str, layer: int) -> Iterator[Parameter]:
        d, q, kv, h = self.dim, self.heads * self.head_dim, self.kv_heads * self.head_dim, self.ffn
        yield from self._norm(f"{at}.attention_norm", d)
        yield from self._linear(f"{at}.attention.wq", q, d)
        yield from self._linear(f"{at}.attention.wk", kv, d, key_value(self.kv_heads))
        yield from self._linear(f"{at}.attention.wv", kv, d, key_value(self.kv_heads))
        if self.qk_norm:
            yield from self._norm(f"{at}.attention.q_norm", self.head_dim, PER_HEAD)
            yield from self._norm(f"{at}.attention.k_norm", self.head_dim, PER_HEAD)
        yield from self._linear(f"{at}.attention.wo", d, q, ROW)
        yield from self._norm(f"{at}.mlp_norm", d)
        gated = self.mlp in GATED
        if self.moe is not None and self.is_moe(layer):
            yield from self.moe.parameters(f"{at}.moe", d, gated)
            return
        if gated:
            yield from self._linear(f"{at}.mlp.w_gate", h, d)
        yield from self._linear(f"{at}.mlp.w_up", h, d)
        yield from self._linear(f"{at}.mlp.w_down", d, h, ROW)

    def _norm(self, name: str, dim: int, cut: Cut = PER_TOKEN) -> Iterator[Parameter]:
        yield Parameter(f"{name}.weight", (dim,), "norm", cut)
        if self.norm == "layer":
            yield Parameter(f"{name}.bias", (dim,), "bias", cut)

    def _linear(self, name: str, rows: int, columns: int, cut: Cut = COLUMN) -> Iterator[Parameter]:
        yield Parameter(f"{name}.weight", (rows, columns), "residual" if cut == ROW else "linear", cut)
        if self.bias:
            # Products of a row cut are parts of a sum: the first rank adds the bias, for all.
            yield Parameter(f"{name}.bias", (rows,), "bias", PER_HEAD if cut == ROW else cut)

    def num_active_parameters(self) -> int:
        """Parameters that take part in computing one token when the model is used: of the routed experts of a layer
        only `top_k`, and no modules of multi-token prediction, which only training needs."""
        used = (p for p in self.parameters() if not p.name.startswith("mtp."))
        return sum(self._num_used(p) for p in used)

    def num_matmul_parameters(self) -> int:
        """Parameters that a token meets in matrix products in training: all matrices but the input embedding, of the
        routed experts `top_k` a layer, and the head, tied or not, once more for each module of multi-token prediction.
        """
        matrices = sum(self._num_used(p) for p in self.parameters() if p.role in MATRICES)
        return matrices + (self.mtp + 1) * self.pad_vocab * self.dim

    def _num_used(self, parameter: Parameter) -> int:
        """Of a stack of experts, those that one token meets."""
        if self.moe is None or parameter.role not in EXPERT_STACKS:
            return parameter.numel
        return parameter.numel // self.moe.experts * self.moe.top_k

    def flops_per_token(self, length: int) -> int:
        """Forward and backward, attention counted without the causal half: 6·N + 12·L·H·d_head·S (PaLM, appendix B).
        L counts the blocks of multi-token prediction too."""
        blocks = self.layers + self.mtp
        return 6 * self.num_matmul_parameters() + 12 * blocks * self.heads * self.head_dim * length
