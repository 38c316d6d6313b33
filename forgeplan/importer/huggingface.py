"""Where does each key of a HuggingFace config.json go?"""

from __future__ import annotations

from forgeplan.importer import huggingface_parts as parts
from forgeplan.importer.rules import Format, Ignore, Join, Lose, Rule, Take
from forgeplan.importer.spelling import FLAG, TOKEN_COUNT, WHOLE

_TOKENS = "ids of special tokens belong to the tokenizer"
_LIBRARY = "how the library runs the model, which a plan does not say"
_MOE = "the family has no experts"
_OTHER_MODEL = "another architecture's key, which this family does not read"

_RULES: dict[str, Rule] = {
    "model_type": Join(""),
    "architectures": Join(""),
    "num_hidden_layers": Take("model.layers", WHOLE),
    "hidden_size": Take("model.dim", WHOLE),
    "num_attention_heads": Take("model.heads", WHOLE),
    "num_key_value_heads": Join(""),
    "head_dim": Join("the width divided by the heads"),
    "intermediate_size": Take("model.ffn", WHOLE),
    "vocab_size": Take("model.vocab", WHOLE),
    "max_position_embeddings": Take("model.context", TOKEN_COUNT),
    "hidden_act": Join(""),
    "rms_norm_eps": Join(""),
    "rope_theta": Join(""),
    "rope_scaling": Join(""),
    "rope_scaling.*": Join("its type does not read it"),
    "rope_parameters.*": Join("its type does not read it"),
    "partial_rotary_factor": Join(""),
    "tie_word_embeddings": Take("model.tie", FLAG, default=False, ours="false"),
    "initializer_range": Join(""),
    "attention_bias": Join("there are no biases"),
    "mlp_bias": Join("there are no biases"),
    "attention_dropout": Lose("dropout is of outputs here (model.dropout), never of attention weights", (0,)),
    "sliding_window": Join("no window is used"),
    "use_sliding_window": Join(""),
    "max_window_layers": Join("no window is used"),
    "layer_types": Join(""),
    "num_local_experts": Join(_MOE),
    "num_experts": Join(_MOE),
    "num_experts_per_tok": Join(_MOE),
    "moe_intermediate_size": Join(_MOE),
    "decoder_sparse_step": Join(_MOE),
    "mlp_only_layers": Join(_MOE),
    "norm_topk_prob": Join(_MOE),
    "router_aux_loss_coef": Join(_MOE),
    "router_jitter_noise": Lose("tokens are not shaken before they are routed", (0,)),
    "output_router_logits": Ignore("the balance loss is added whenever its weight is above 0"),
    "torch_dtype": Ignore("of the stored file; precision says what is trained in"),
    "dtype": Ignore("of the stored file; precision says what is trained in"),
    "bos_token_id": Ignore(_TOKENS),
    "eos_token_id": Ignore(_TOKENS),
    "pad_token_id": Ignore(_TOKENS),
    "transformers_version": Ignore(_LIBRARY),
    "use_cache": Ignore(_LIBRARY),
    "cache_implementation": Ignore(_LIBRARY),
    "pretraining_tp": Ignore(_LIBRARY),
    "_name_or_path": Ignore(_LIBRARY),
    "_attn_implementation*": Ignore(_LIBRARY),
    "output_attentions": Ignore(_LIBRARY),
    "output_hidden_states": Ignore(_LIBRARY),
    "return_dict": Ignore(_LIBRARY),
    "is_encoder_decoder": Ignore(_LIBRARY),
    "chunk_size_feed_forward": Ignore(_LIBRARY),
    "problem_type": Ignore(_LIBRARY),
    "id2label*": Ignore(_LIBRARY),
    "label2id*": Ignore(_LIBRARY),
    "auto_map*": Lose("code of the folder is never run"),
    "quantization_config*": Lose("weights are trained whole: a quantised file is another one"),
    "layer_norm_epsilon": Ignore(_OTHER_MODEL),
    "rope_interleaved": Ignore(_LIBRARY),
    "is_llama_config": Ignore(_LIBRARY),
    "transformers.js_config*": Ignore(_LIBRARY),
    "model_max_length": Ignore("of the tokenizer"),
}

HUGGINGFACE = Format(
    "huggingface",
    _RULES,
    (parts.family, parts.shape, parts.rotary, parts.window, parts.experts, parts.training),
)
