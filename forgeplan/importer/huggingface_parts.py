"""Which keys of a config.json only mean something together, and what does a plan need besides?"""

from __future__ import annotations

from collections.abc import Mapping

from attrs import frozen

from forgeplan.diagnostics.refusal import UsageError
from forgeplan.dsl.units import show_amount
from forgeplan.importer.cluster import place
from forgeplan.importer.rules import Importing
from forgeplan.importer.spelling import TOKEN_COUNT, shortened


@frozen
class Family:
    """What the library takes where a key is missing, and what the architecture always has."""

    eps: str = "1e-6"
    theta: int = 10_000
    head_dim: int | None = None
    kv_heads: int | None = None
    qk_norm: bool = False
    windowed: bool = False
    """Whether the window counts whenever it is given, without a switch."""
    moe: bool = False


FAMILIES: Mapping[str, Family] = {
    "llama": Family(),
    "mistral": Family(kv_heads=8, windowed=True),
    "mixtral": Family(eps="1e-5", theta=1_000_000, kv_heads=8, windowed=True, moe=True),
    "qwen3": Family(head_dim=128, qk_norm=True),
    "qwen3_moe": Family(qk_norm=True, moe=True),
}
REFUSED = {
    "qwen2": "its biases on queries, keys and values alone have no equivalent: model.bias is of all linear layers",
    "qwen2_moe": "its biases on queries, keys and values alone, and its gate on the shared expert, have no equivalent",
    "deepseek_v2": "its multi-head latent attention has no equivalent",
    "deepseek_v3": "its multi-head latent attention has no equivalent: keys and values are compressed into one vector"
    " that no field here describes (std:models has deepseek_v3_like, with grouped-query attention)",
    "kimi_k2": "its multi-head latent attention has no equivalent",
    "gemma": "its norms multiply by 1 + weight, and its embeddings are scaled: neither has an equivalent",
    "gemma2": "it has norms before and after each part, and scales its embeddings: neither has an equivalent",
    "gemma3_text": "it has norms before and after each part, and scales its embeddings: neither has an equivalent",
    "gemma3": "it has norms before and after each part, and scales its embeddings: neither has an equivalent",
    "olmo": "its norms have no weights, which has no equivalent",
    "olmo2": "its norms come after each part, and normalise queries and keys over all heads: neither has an equivalent",
    "olmo3": "its norms come after each part, and normalise queries and keys over all heads: neither has an equivalent",
    "phi3": "queries, keys and values are one matrix, and its longrope scaling has no equivalent",
    "gpt2": "its learned positions have no equivalent: every model here has rotary positions",
    "gpt_neox": "attention and MLP stand side by side in a block, which has no equivalent",
    "gpt_oss": "its attention sinks have no equivalent",
    "falcon": "attention and MLP stand side by side in a block, which has no equivalent",
    "mpt": "its linear biases of attention by distance have no equivalent",
    "llama4": "its attention in chunks, with layers that have no rotary positions, has no equivalent",
    "smollm3": "its layers without rotary positions have no equivalent",
    "cohere": "attention and MLP stand side by side in a block, which has no equivalent",
    "granite": "its multipliers of embeddings, residuals and logits have no equivalent",
}
_NEEDED = (
    "num_hidden_layers",
    "hidden_size",
    "num_attention_heads",
    "vocab_size",
    "intermediate_size",
    "max_position_embeddings",
)
_ACTIVATIONS = {"silu": "swiglu", "swish": "swiglu", "gelu": "geglu"}


def family(this: Importing) -> None:
    """The architecture; refuses one that has no equivalent, and a file without a shape."""
    name = this.text("model_type", "")
    if any(key.startswith(("text_config.", "vision_config.")) for key in this.values):
        this.refused.append(
            f"{name or 'this model'}: there are no vision towers in this version; of its text model, give a config.json"
        )
    elif name in REFUSED:
        this.refused.append(f"{name}: {REFUSED[name]}")
    elif name not in FAMILIES:
        known = ", ".join(FAMILIES)
        this.refused.append(f"model_type {shortened(name)} is not known to this importer: it reads {known}")
    else:
        for key in _NEEDED:
            if this.whole(key, 1) < 1:
                raise UsageError(f"{this.file}: {key} is {this.whole(key, 1)}, and a shape needs at least 1")
        missing = [key for key in _NEEDED if key not in this.values]
        if missing:
            this.refused.append(f"the file has no {', '.join(missing)}, and a shape needs it")
    if this.refused:
        this.lost("model_type", "no plan can be made of it")
        return
    this.draft.root.at("model").text = "decoder"
    this.took("model_type", "model = decoder")
    this.ignored("architectures", "model_type says which it is")


def of(this: Importing) -> Family:
    """The family of a file that `family` did not refuse."""
    return FAMILIES[this.text("model_type", "")]


def shape(this: Importing) -> None:
    """Heads, norms, activation and biases, with the defaults of the family."""
    kind, heads = of(this), this.whole("num_attention_heads", 1)
    this.draft.set("model.layers", "")
    this.draft.set("model.dim", "")
    this.draft.set("model.heads", "")
    kv = this.whole("num_key_value_heads", kind.kv_heads or heads)
    if kv != heads or "num_key_value_heads" in this.values:
        this.put("num_key_value_heads", "model.kv_heads", str(kv))
    width = this.whole("head_dim", kind.head_dim or this.whole("hidden_size", 1) // max(heads, 1))
    if width * heads != this.whole("hidden_size", 1) or "head_dim" in this.values:
        this.put("head_dim", "model.head_dim", str(width))
    eps = this.number("rms_norm_eps", kind.eps)
    if eps != "1e-5" or "rms_norm_eps" in this.values:
        this.put("rms_norm_eps", "model.norm_eps", eps)
    if kind.qk_norm:
        this.draft.set("model.qk_norm", "true", "the family normalises queries and keys of each head")
    word = this.text("hidden_act", "silu")
    if word not in _ACTIVATIONS:
        this.refused.append(f"hidden_act {word} has no equivalent: silu and gelu do")
        this.lost("hidden_act", "model.mlp has no such gate")
        return
    if _ACTIVATIONS[word] != "swiglu":
        this.draft.set("model.mlp", _ACTIVATIONS[word])
    this.took("hidden_act", f"model.mlp = {_ACTIVATIONS[word]}")
    spread = this.number("initializer_range", "0.02")
    how = "output projections are divided by the root of twice the layers here"
    this.put("initializer_range", "model.init_std", spread, how) if "initializer_range" in this.values else None
    _biases(this)


def _biases(this: Importing) -> None:
    attention, mlp = this.flag("attention_bias", False), this.flag("mlp_bias", False)
    if attention != mlp:
        only = "attention_bias" if attention else "mlp_bias"
        this.refused.append(f"{only} alone has no equivalent: model.bias is of all linear layers of a block")
        this.lost(only, "model.bias is of all linear layers of a block")
    elif attention:
        for key in ("attention_bias", "mlp_bias"):
            this.put(key, "model.bias", "true")


def rotary(this: Importing) -> None:
    """Positions, in the older form and in that of transformers 5."""
    at = "rope_parameters" if any(key.startswith("rope_parameters.") for key in this.values) else "rope_scaling"
    newer = at == "rope_parameters"
    inside = "rope_parameters.rope_theta"
    theta = this.real(inside if inside in this.values else "rope_theta", of(this).theta)
    spelt = show_amount(theta)
    key = "rope_parameters.rope_theta" if "rope_parameters.rope_theta" in this.values else "rope_theta"
    if spelt != "10_000" or key in this.values:
        this.put(key, "model.rope.theta", spelt)
    if "rope_theta" not in this.rows:
        this.ignored("rope_theta", "rope_parameters says it")
    for other in (f"{at}.partial_rotary_factor", "partial_rotary_factor"):
        if this.real(other, 1) != 1:
            this.refused.append("partial_rotary_factor has no equivalent: all of a head is rotated")
            this.lost(other, "all of a head is rotated")
        this.ignored(other, "all of a head is rotated") if other not in this.rows else None
    _stretch(this, at)
    if newer:
        for key in [key for key in this.values if key.startswith("rope_scaling.")]:
            this.ignored(key, "rope_parameters says it")


def _stretch(this: Importing, at: str) -> None:
    type_key = f"{at}.rope_type" if f"{at}.rope_type" in this.values else f"{at}.type"
    kind = this.text(type_key, "default")
    context = this.whole("max_position_embeddings", 0)
    fields = {"llama3": "llama3", "yarn": "yarn", "linear": "linear", "dynamic": "ntk"}
    if kind == "default":
        this.took(type_key, "model.rope.scaling = none")
        this.ignored(f"{at}.type", "rope_type says it")
        return
    if kind not in fields:
        this.refused.append(f"rope scaling {kind} has no equivalent: {', '.join(fields)} do")
        this.lost(type_key, f"{', '.join(fields)} are what both have")
        return
    where, ours = "model.rope.scaling", fields[kind]
    this.draft.root.at(where).text = ours
    this.took(type_key, f"{where} = {ours}")
    this.ignored(f"{at}.type", "rope_type says it") if f"{at}.type" not in this.rows else None
    this.put(f"{at}.factor", f"{where}.factor", this.number(f"{at}.factor", 1))
    numbers = {
        "llama3": {"low_freq_factor": "low", "high_freq_factor": "high"},
        "yarn": {"beta_fast": "fast", "beta_slow": "slow"},
    }.get(kind, {})
    for name, field in numbers.items():
        if f"{at}.{name}" in this.values:
            this.put(f"{at}.{name}", f"{where}.{field}", this.number(f"{at}.{name}", 1))
    if kind != "linear":
        key = f"{at}.original_max_position_embeddings"
        this.put(key, f"{where}.original", TOKEN_COUNT.spell(this.whole(key, context)))
    for name in ("attention_factor", "mscale", "mscale_all_dim", "truncate"):
        if f"{at}.{name}" in this.values and kind == "yarn":
            this.lost(f"{at}.{name}", "the attention factor of yarn is 0.1·ln(factor) + 1")


def window(this: Importing) -> None:
    """A window of all layers, or of none."""
    kinds = this.values.get("layer_types")
    listed = {str(kind) for kind in kinds} if isinstance(kinds, list) else set()
    size = this.whole("sliding_window", 0)
    used = this.flag("use_sliding_window", of(this).windowed) and size > 0
    if listed:
        used = used and listed != {"full_attention"}
    if used and len(listed) > 1:
        this.refused.append(
            "layer_types mixes windows and whole sequences, which has no equivalent: model.window is of all layers"
        )
        this.lost("layer_types", "model.window is of all layers")
    elif used and this.whole("max_window_layers", 0) > 0 and not (of(this).windowed or listed):
        this.refused.append(
            "max_window_layers gives a window to some layers, which has no equivalent: model.window is of all layers"
        )
        this.lost("max_window_layers", "model.window is of all layers")
    elif used:
        this.put("sliding_window", "model.window", TOKEN_COUNT.spell(size))
    this.took("use_sliding_window", "model.window" if used else "model.window = none")
    if "layer_types" not in this.rows:
        this.took("layer_types", "model.window" if used else "model.window = none")


def experts(this: Importing) -> None:
    """The block of experts of Mixtral and Qwen3 MoE."""
    kind, name = of(this), this.text("model_type", "")
    if not kind.moe:
        return
    key = "num_experts" if "num_experts" in this.values else "num_local_experts"
    mixtral = name == "mixtral"
    count, top = this.whole(key, 8 if mixtral else 128), this.whole("num_experts_per_tok", 2 if mixtral else 8)
    this.put(key, "model.moe.experts", show_amount(count))
    this.put("num_experts_per_tok", "model.moe.top_k", show_amount(top))
    if not mixtral:
        this.put("moe_intermediate_size", "model.moe.ffn", show_amount(this.whole("moe_intermediate_size", 768)))
        _which(this)
        renormalised = this.flag("norm_topk_prob", False)
        if not renormalised:
            this.draft.root.at("model.moe.router").text = "softmax_topk"
            this.draft.set("model.moe.router.renormalise", "false")
        this.took(
            "norm_topk_prob",
            f"model.moe.router = softmax_topk {{ renormalise = {'true' if renormalised else 'false'} }}",
        )
    weight = this.real("router_aux_loss_coef", "0.001")
    spelt = show_amount(weight * top)
    how = f"the loss is 1 at perfect balance here, and top_k = {top} there"
    this.put(
        "router_aux_loss_coef",
        "model.moe.balance",
        spelt,
        how,
        comment=f"{show_amount(weight)} × top_k",
    )


def _which(this: Importing) -> None:
    step = this.whole("decoder_sparse_step", 1)
    if step > 1:
        this.put("decoder_sparse_step", "model.moe.every", str(step))
    this.took("decoder_sparse_step", f"model.moe.every = {step}")
    dense = this.values.get("mlp_only_layers", [])
    if isinstance(dense, list) and dense == list(range(len(dense))):
        if dense:
            this.draft.set("model.moe.first_dense", str(len(dense)))
        this.took("mlp_only_layers", f"model.moe.first_dense = {len(dense)}")
    else:
        this.refused.append(
            "mlp_only_layers has no equivalent, unless it names the first layers: model.moe.first_dense"
        )
        this.lost("mlp_only_layers", "model.moe.first_dense is of the first layers")


def training(this: Importing) -> None:
    """What a config.json does not say, and a plan must."""
    if this.refused:
        return
    context = this.whole("max_position_embeddings", 4096)
    length = min(context, 4096)
    place(this, {}, None, "a config.json says nothing of them")
    this.draft.set("sources.data", 'tokens { path = "data/*.npy" }', "write token ids here")
    this.draft.set("batch.global", TOKEN_COUNT.spell(length * 64 * (2**20 // (length * 64) or 1)))
    this.draft.set("batch.micro", "1 sequence")
    this.draft.set("batch.length", TOKEN_COUNT.spell(length))
    this.draft.root.at("optimizer").text = "adamw"
    this.draft.set("optimizer.lr", "3e-4")
    this.draft.root.at("schedule").text = "cosine"
    this.draft.set("schedule.warmup", "1%")
    this.draft.set("schedule.floor", "10%")
    this.draft.set("apply.recompute.mode", "full")
    this.draft.set("budget.tokens", "20B tokens")
    this.draft.set("checkpoint.every", "30min")
    this.assumed += [
        "training: a config.json is of the model alone; data, batch, optimizer, schedule and budget are a beginning",
        "weights: training begins from the seed, as this version reads none",
    ]
