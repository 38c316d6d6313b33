"""Where does each key of a KempnerForge TOML file go?"""

from __future__ import annotations

from decimal import Decimal

from forgeplan.importer import kempnerforge_data as data
from forgeplan.importer import kempnerforge_parts as parts
from forgeplan.importer.rules import Format, Ignore, Join, Lose, Rule, Take
from forgeplan.importer.spelling import FLAG, REAL, STEP_COUNT, TOKEN_COUNT, WHOLE, Members

_HOST = "how a machine runs the program, which a plan does not say"
_LOGS = "logs and output folders are not part of a plan: a run has its own folder, runs/NAME"
_VISION = "there are no vision towers, connectors or images in this version: the plan is of the text model"
_DENSE = "num_experts is 0: the model is dense"

_MODEL: dict[str, Rule] = {
    "model.model_type": Lose("the only model of this version is a decoder", ("transformer",)),
    "model.n_layers": Take("model.layers", WHOLE, default=32),
    "model.dim": Take("model.dim", WHOLE, default=4096),
    "model.n_heads": Take("model.heads", WHOLE, default=32),
    "model.n_kv_heads": Take("model.kv_heads", WHOLE),
    "model.vocab_size": Take("model.vocab", WHOLE, default=32000),
    "model.ffn_hidden_dim": Take("model.ffn", WHOLE),
    "model.ffn_dim_multiplier": Take("model.ffn_multiplier", REAL, default=1, ours="1"),
    "model.activation": Take(
        "model.mlp",
        Members({"silu": "swiglu", "gelu": "gelu", "relu": "relu"}),
        default="silu",
        ours="swiglu",
        lacking="silu (which is gated), gelu and relu are what both have",
    ),
    "model.norm_type": Take(
        "model.norm", Members({"rmsnorm": "rms", "layernorm": "layer"}), default="rmsnorm", ours="rms"
    ),
    "model.norm_eps": Take("model.norm_eps", REAL, default=Decimal("1e-5"), ours="1e-5"),
    "model.max_seq_len": Take("model.context", TOKEN_COUNT, default=2048),
    "model.rope_theta": Take("model.rope.theta", REAL, default=10000, ours="10_000"),
    "model.tie_embeddings": Take("model.tie", FLAG, default=False, ours="false"),
    "model.qk_norm": Take("model.qk_norm", FLAG, default=False, ours="false"),
    "model.init_std": Take("model.init_std", REAL, default=Decimal("0.02"), ours="0.02"),
    "model.num_experts": Join("0 experts: the model is dense"),
    "model.moe_*": Join(_DENSE),
    "model.vlm.*": Lose(_VISION),
}
_TRAIN: dict[str, Rule] = {
    "train.batch_size": Join(""),
    "train.grad_accum_steps": Join(""),
    "train.seq_len": Join(""),
    "train.max_steps": Take("budget.steps", STEP_COUNT, default=100_000),
    "train.grad_clip_norm": Take("guard.clip", REAL, default=1, ours="1"),
    "train.seed": Take("seed", WHOLE, default=42),
    "train.compile_model": Join("nothing is compiled"),
    "train.mixed_precision": Join(""),
    "train.activation_checkpointing": Join(""),
    "train.loss_fn": Join(""),
    "train.z_loss_weight": Take("loss.z", REAL),
    "train.ce_chunk_size": Ignore("logits are never cut into chunks of tokens here; the numbers are the same"),
    "train.shutdown_timeout_sec": Ignore(_HOST),
    "train.nccl_health_check_interval": Lose("collectives are not probed in this version", (0,)),
    "optimizer.name": Join(""),
    "optimizer.lr": Join(""),
    "optimizer.betas": Join(""),
    "optimizer.eps": Take("optimizer.eps", REAL, default=Decimal("1e-8"), ours="1e-8"),
    "optimizer.weight_decay": Take("optimizer.weight_decay", REAL, default=Decimal("0.1"), ours="0.1"),
    "optimizer.fused": Ignore("the fastest kernel that gives the same numbers is taken"),
    "optimizer.muon_*": Join("it is an option of muon, and the optimizer is another"),
    "optimizer.schedule_free_*": Join("it is an option of schedule_free_adamw, and the optimizer is another"),
    "scheduler.name": Join(""),
    "scheduler.warmup_steps": Join("the rate is constant"),
    "scheduler.min_lr_ratio": Join("the rate does not decay"),
    "scheduler.decay_steps": Join("the rate does not decay"),
    "scheduler.stable_steps": Join("the schedule is not wsd"),
    "scheduler.wsd_decay_type": Join("the schedule is not wsd"),
    "scheduler.rex_alpha": Join("the schedule is not rex"),
}
_REST: dict[str, Rule] = {
    "data.pack_sequences": Join("a sequence is one document"),
    "data.num_workers": Ignore(_HOST),
    "data.pin_memory": Ignore(_HOST),
    "data.prefetch_factor": Ignore(_HOST),
    "data.hf_image_size": Ignore("it is for images"),
    "data.hf_dataset_image_field": Ignore("it is for images"),
    "data.hf_dataset_prompt_field": Lose("prompts are not told from answers in this version", ("",)),
    "data.*": Join("the source is another"),
    "distributed.*": Join("there is one stage"),
    "distributed.nccl_timeout_sec": Ignore("timeouts of collectives are not part of a plan"),
    "distributed.backend": Ignore("the backend follows from the cluster"),
    "checkpoint.interval": Take("checkpoint.every", STEP_COUNT, default=1000),
    "checkpoint.keep_last_n": Join(""),
    "checkpoint.dir": Ignore(
        "a run has its own folder, runs/NAME, with its checkpoints; --set checkpoint.path=… moves them"
    ),
    "checkpoint.async_mode": Lose("a save is over before the next step begins", ("disabled",)),
    "checkpoint.load_path": Lose("a run begins from its seed: weights are not read in this version", ("",)),
    "checkpoint.export_dtype": Ignore("this version exports nothing"),
    "checkpoint.exclude_from_loading": Lose("a resumed run takes everything", ([],)),
    "checkpoint.ignore_freeze_mismatch": Ignore("nothing is frozen in this version"),
    "checkpoint.dyn_ckpt_window*": Lose("saves are at one distance: checkpoint.every"),
    "metrics.log_interval": Take("metrics.every", STEP_COUNT, default=10, ours="10 steps"),
    "metrics.enable_tensorboard": Join(""),
    "metrics.enable_wandb": Lose(
        "this version has no sink for Weights & Biases; metrics.jsonl is always written", (False,)
    ),
    "metrics.enable_mlflow": Lose("this version has no sink for MLflow; metrics.jsonl is always written", (False,)),
    "metrics.*": Ignore(_LOGS),
    "profiling.enable": Lose("this version writes no profiler traces", (False,)),
    "profiling.*": Ignore("no trace is asked for, or none can be written"),
    "eval.*": Join("no evaluation is switched on"),
    "plugins": Lose("code is never imported from a plan", ([],)),
    "vlm.*": Lose(_VISION),
    "vision_encoder.*": Lose(_VISION),
    "adapter.*": Lose(_VISION),
    "video.*": Lose(_VISION),
    "frame_selector.*": Lose(_VISION),
    "time_embedding.*": Lose(_VISION),
}

KEMPNERFORGE = Format(
    "kempnerforge",
    {**_MODEL, **_TRAIN, **_REST},
    (
        parts.model,
        parts.experts,
        parts.mesh,
        parts.batch,
        parts.precision,
        parts.optimizer,
        parts.schedule,
        parts.loss,
        parts.program,
        parts.retention,
        data.sources,
        data.evaluation,
        data.phases,
    ),
)
