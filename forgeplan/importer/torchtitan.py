"""Where does each key of a torchtitan TOML file (up to release 0.2) go?"""

from __future__ import annotations

from forgeplan.importer import torchtitan_layout as layout
from forgeplan.importer import torchtitan_parts as parts
from forgeplan.importer.rules import Format, Ignore, Join, Lose, Rule, Take
from forgeplan.importer.spelling import REAL, STEP_COUNT, Members

_DTYPES = Members({"bfloat16": "bf16", "float32": "fp32"})
_NO_FP16 = "there is no loss scaler: bf16 and fp32 are what there is"
_LOGS = "logs and output folders are not part of a plan: a run has its own folder, runs/NAME"
_HOST = "how a machine runs the program, which a plan does not say"
_OPTIONAL = "the feature is not switched on"

_GENERAL: dict[str, Rule] = {
    "job.description": Join("the plan needs no description"),
    "job.dump_folder": Ignore(_LOGS),
    "job.print_args": Ignore(_LOGS),
    "job.print_config": Ignore(_LOGS),
    "job.save_config_file": Ignore(_LOGS),
    "job.use_for_integration_test": Ignore(_HOST),
    "job.config_file": Ignore(_HOST),
    "job.custom_config_module": Lose("a Python module that extends the configuration", ("",)),
    "profiling.enable_profiling": Lose("this version writes no profiler traces", (False,)),
    "profiling.enable_memory_snapshot": Lose("this version takes no memory snapshots", (False,)),
    "profiling.*": Ignore(_LOGS),
    "metrics.log_freq": Take("metrics.every", STEP_COUNT, default=10, ours="10 steps"),
    "metrics.enable_tensorboard": Join(""),
    "metrics.enable_wandb": Lose(
        "this version has no sink for Weights & Biases; metrics.jsonl is always written", (False,)
    ),
    "metrics.*": Ignore(_LOGS),
    "experimental.custom_import": Lose("code is never imported from a plan", ("",)),
    "experimental.custom_args_module": Lose("code is never imported from a plan", ("",)),
    "comm.*": Ignore("timeouts and traces of collectives are not part of a plan"),
    "memory_estimation.*": Ignore("`forgeplan explain` shows the memory of every rank"),
    "fault_tolerance.enable": Lose("training goes on from a checkpoint, not over replicas that come and go", (False,)),
    "fault_tolerance.*": Ignore(_OPTIONAL),
    "debug.moe_force_load_balance": Lose("tokens always go where the router sends them", (False,)),
    "debug.print_config": Ignore(_LOGS),
    "debug.save_config_file": Ignore(_LOGS),
    "liger_kernel.enable_fused_linear_cross_entropy": Lose(
        "head and loss are not one kernel in this version; the numbers are the same", (False,)
    ),
    "debug.deterministic*": Ignore("a run always repeats itself exactly where the kernels do"),
    "training.deterministic": Ignore("a run always repeats itself exactly where the kernels do"),
    "training.gc_freq": Ignore(_HOST),
    "training.gc_debug": Ignore(_HOST),
}
_MODEL: dict[str, Rule] = {
    "model.name": Join(""),
    "model.flavor": Join(""),
    "model.hf_assets_path": Join(""),
    "model.tokenizer_path": Join(""),
    "model.converters": Join("no converter is named"),
    "model.print_after_conversion": Ignore(_LOGS),
    "model.vocab_size": Lose("the flavor's own vocabulary is taken: set model.vocab", (0, -1)),
    "model.norm_type": Lose("the models of these releases have rms norms", ("rmsnorm", "fused_rmsnorm")),
    "model.use_flex_attn": Lose("name it in the plan: model.attention = flex", (False,)),
    "model.attn_mask_type": Lose("name it in the plan: batch.pack = true", ("causal",)),
}
_TRAINING: dict[str, Rule] = {
    "training.dataset": Join(""),
    "training.dataset_path": Join(""),
    "training.batch_size": Join(""),
    "training.local_batch_size": Join(""),
    "training.global_batch_size": Join(""),
    "training.seq_len": Join(""),
    "training.steps": Take("budget.steps", STEP_COUNT, default=10_000),
    "training.max_norm": Take("guard.clip", REAL, default=1, ours="1"),
    "training.seed": Join(""),
    "debug.seed": Join(""),
    "training.dtype": Join(""),
    "training.mixed_precision_param": Take(
        "precision.compute", _DTYPES, default="bfloat16", ours="bf16", lacking=_NO_FP16
    ),
    "training.mixed_precision_reduce": Take(
        "precision.reduce", _DTYPES, default="float32", ours="fp32", lacking=_NO_FP16
    ),
    "training.enable_cpu_offload": Join("parameters stay on the devices"),
    "training.compile": Join("nothing is compiled"),
    "compile.*": Join("nothing is compiled"),
    "optimizer.name": Join(""),
    "optimizer.lr": Take("optimizer.lr", REAL, default=parts.LEARNING_RATE),
    "optimizer.beta1": Join(""),
    "optimizer.beta2": Join(""),
    "optimizer.eps": Take("optimizer.eps", REAL, default=parts.EPSILON, ours="1e-8"),
    "optimizer.weight_decay": Take(
        "optimizer.weight_decay",
        REAL,
        default=parts.WEIGHT_DECAY,
        ours="0.1",
        how="norms do not decay here; there, everything does",
    ),
    "optimizer.implementation": Ignore("the fastest kernel that gives the same numbers is taken"),
    "optimizer.fused": Ignore("the fastest kernel that gives the same numbers is taken"),
    "optimizer.early_step_in_backward": Lose("an update is one step after the whole backward pass", (False,)),
    "lr_scheduler.*": Join("the rate is constant"),
}
_LAYOUT: dict[str, Rule] = {
    "parallelism.data_parallel_replicate_degree": Join(""),
    "parallelism.data_parallel_shard_degree": Join(""),
    "parallelism.tensor_parallel_degree": Join(""),
    "parallelism.pipeline_parallel_degree": Join(""),
    "parallelism.context_parallel_degree": Join(""),
    "parallelism.expert_parallel_degree": Join(""),
    "parallelism.expert_tensor_parallel_degree": Lose(
        "experts are divided among ranks as whole matrices, never inside of one", (0, 1)
    ),
    "parallelism.fsdp_reshard_after_forward": Join(""),
    "parallelism.enable_compiled_autograd": Lose("the backward pass is not compiled by itself", (False,)),
    "parallelism.expert_parallel_comm_backend": Ignore("tokens travel by all-to-all of the collective library"),
    "parallelism.disable_loss_parallel": Lose(
        "with tp the loss is always computed on parts of the vocabulary", (False,)
    ),
    "parallelism.enable_async_tensor_parallel": Lose(
        "products and their exchanges do not overlap in this version; the numbers are the same", (False,)
    ),
    "parallelism.context_parallel_rotate_method": Join("a sequence is on one rank"),
    "parallelism.context_parallel_load_balancer": Join("a sequence is on one rank"),
    "parallelism.pipeline_parallel_*": Join("there is one stage"),
    "parallelism.module_fqns_per_model_part": Join("there is one stage"),
    "activation_checkpoint.mode": Join(""),
    "activation_checkpoint.selective_ac_option": Join("the mode is not selective"),
    "activation_checkpoint.memory_budget": Join("the mode is not memory_budget"),
    "activation_checkpoint.early_stop": Ignore("it changes no number"),
    "activation_checkpoint.per_op_*": Lose(
        "which products are kept is decided by kind, not by name", ([], ["moe.router.gate"])
    ),
    "activation_checkpoint.*": Ignore("it changes no number"),
    "float8.*": Join("float8 is not among model.converters"),
    "quantize.linear.float8.*": Join("float8 is not among model.converters"),
    "quantize.grouped_mm.*": Join("it is not among model.converters"),
    "quantize.dense.*": Join("it is not among model.converters"),
    "quantize.moe.*": Join("it is not among model.converters"),
    "quantize.*": Join("it is not among model.converters"),
    "mx.*": Join("it is not among model.converters"),
    "checkpoint.*": Join("no checkpoints are switched on there"),
    "validation.*": Join("no validation is switched on"),
}

TORCHTITAN = Format(
    "torchtitan",
    {**_GENERAL, **_MODEL, **_TRAINING, **_LAYOUT},
    (
        parts.model,
        parts.describe,
        layout.mesh,
        parts.batch,
        parts.data,
        parts.optimizer,
        parts.schedule,
        parts.precision,
        layout.pipeline,
        layout.context,
        layout.sharding,
        layout.recompute,
        layout.float8,
        layout.compiling,
        parts.checkpoints,
        parts.sinks,
    ),
)
