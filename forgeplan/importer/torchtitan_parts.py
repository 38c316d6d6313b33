"""Which keys of a torchtitan file only mean something together?"""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Any

from forgeplan.dsl.units import show_amount
from forgeplan.importer.cluster import place
from forgeplan.importer.draft import Node, word
from forgeplan.importer.packing import pack
from forgeplan.importer.rules import Importing
from forgeplan.importer.spelling import (
    PORTION,
    SEQUENCE_COUNT,
    STEP_COUNT,
    TOKEN_COUNT,
    quoted,
)
from forgeplan.importer.torchtitan_models import LLAMA3_ORIGINAL, REFUSED, flavor_of, flavors_of

LEARNING_RATE, EPSILON, WEIGHT_DECAY = Decimal("8e-4"), Decimal("1e-8"), Decimal("0.1")
_BATCH = "training.local_batch_size"
_AXES = {
    "pp": "parallelism.pipeline_parallel_degree",
    "dp_replicate": "parallelism.data_parallel_replicate_degree",
    "cp": "parallelism.context_parallel_degree",
    "tp": "parallelism.tensor_parallel_degree",
}
_SHARD = "parallelism.data_parallel_shard_degree"
_EP = "parallelism.expert_parallel_degree"
_PIPELINES = {
    "1F1B": "one_f_one_b",
    "GPipe": "gpipe",
    "LoopedBFS": "looped_bfs",
    "Interleaved1F1B": "interleaved",
    "InterleavedZeroBubble": "zero_bubble",
    "ZBVZeroBubble": "zbv",
    "DualPipeV": "dualpipe_v",
}
_FQNS = {
    "output": "head",
    "attention.wq": "*.attention.wq",
    "attention.wk": "*.attention.wk",
    "attention.wv": "*.attention.wv",
    "attention.wo": "*.attention.wo",
    "attention": "*.attention",
    "feed_forward": "*.mlp",
    "feed_forward.w1": "*.mlp.w_gate",
    "feed_forward.w2": "*.mlp.w_down",
    "feed_forward.w3": "*.mlp.w_up",
}
"""Names of modules there, and patterns of ours."""
_FLOAT8 = ("float8", "quantize.linear.float8")


def model(this: Importing) -> None:
    """The shape, from name and flavor; refuses a model that has no equivalent."""
    name, flavor = this.text("model.name", "llama3"), this.text("model.flavor", "debugmodel")
    if name in REFUSED:
        this.refused.append(f"{name}: {REFUSED[name]}")
        this.lost("model.name", "no plan can be made of it")
        return
    found = flavor_of(name, flavor)
    if found is None:
        known = flavors_of(name)
        rest = f"of {name} these are known: {', '.join(known)}" if known else "llama3 and qwen3 are known"
        this.refused.append(f"the shape of model {name}, flavor {flavor}, is not known to this importer; {rest}")
        this.lost("model.flavor", "a flavor is a Python object there, of which the file says only the name")
        return
    base = found.base if found.base == "decoder" else this.draft.use("std:models", found.base)
    this.draft.root.at("model").text = base
    for path, text in found.fields.items():
        if base == "decoder":
            this.draft.set(f"model.{path}", text)
        else:
            this.draft.root.at("model").fields[path] = Node(text)
    if found.attention:
        this.draft.set("model.attention", found.attention)
    length = this.whole("training.seq_len", 2048)
    shortest = LLAMA3_ORIGINAL if name == "llama3" else 1
    this.draft.set("model.context", TOKEN_COUNT.spell(max(length, shortest)))
    this.took("model.name", f"model = {base}")
    how = "documents of a sequence do not see one another: batch.pack" if found.packs else ""
    this.took("model.flavor", f"model = {base}", how)
    if name == "llama3":
        this.assumed.append(
            "rotary positions are stretched as in Llama 3.1 (factor 8, from 8,192), which is what llama3 does in 0.2;"
            " for a run of an older release set model.rope.scaling = none"
        )


def describe(this: Importing) -> None:
    """The description is the plan's doc comment."""
    text = " ".join(this.text("job.description", "").split())
    if text:
        this.draft.doc = text
        this.took("job.description", "the plan's doc comment")


def degrees(this: Importing) -> dict[str, int]:
    """The mesh without the axis that shards, each degree at least 1."""
    return {axis: max(1, this.whole(key, 1)) for axis, key in _AXES.items()}


def mesh(this: Importing) -> None:
    """Degrees, and the machines for them."""
    others, shard = degrees(this), this.whole(_SHARD, -1)
    place(this, others, shard if shard > 0 else None, f"{_SHARD} takes what there is")
    for axis, degree in others.items():
        if degree > 1:
            this.draft.set(f"mesh.{axis}", str(degree))
        this.took(_AXES[axis], f"mesh.{axis} = {degree}")
    if shard > 1:
        this.draft.set("mesh.dp_shard", str(shard))
    this.took(_SHARD, f"mesh.dp_shard = {shard if shard > 0 else 'auto'}")
    ep = this.whole(_EP, 1)
    if ep > 1:
        this.draft.set("mesh.ep", str(ep))
    this.took(_EP, f"mesh.ep = {max(ep, 1)}")


def batch(this: Importing) -> None:
    """Sequences there, for one data rank or all of them; pipelines cut the local batch into microbatches."""
    length = this.whole("training.seq_len", 2048)
    key = _BATCH if _BATCH in this.values else "training.batch_size"
    local, total = this.whole(key, 8), this.whole("training.global_batch_size", -1)
    micro_key = "parallelism.pipeline_parallel_microbatch_size"
    piped = degrees(this)["pp"] > 1
    micro = min(local, this.whole(micro_key, 1)) if piped else local
    this.draft.root.at("batch")
    if total > 0:
        this.put("training.global_batch_size", "batch.global", SEQUENCE_COUNT.spell(total))
    else:
        rounds = max(1, local // max(micro, 1))
        why = f"{local} sequences a data rank, {micro} at a time" if piped else "one pass, as there"
        this.draft.set("batch.accumulation", show_amount(rounds), why)
        this.ignored(
            "training.global_batch_size", "-1 is the local batch times the data ranks, which accumulation = 1 is"
        )
    spelt = SEQUENCE_COUNT.spell(micro)
    this.draft.set("batch.micro", spelt, "" if key in this.values else "default of torchtitan")
    how = f"a pipeline takes it in microbatches of {micro}" if piped else ""
    this.took(key, f"batch.micro = {spelt}", how)
    if piped:
        this.took(micro_key, f"batch.micro = {spelt}")
    this.put("training.seq_len", "batch.length", TOKEN_COUNT.spell(length))


def data(this: Importing) -> None:
    """One source. A data set by name is fetched there; here it is files."""
    folder = this.text("model.hf_assets_path", "").rstrip("/")
    if folder:
        this.put(
            "model.hf_assets_path", "tokenizer", f"bpe {{ path = {quoted(folder + '/tokenizer.json')} }}",
            "of the folder, the tokenizer is read; weights are not",
        )  # fmt: skip
    this.lost("model.tokenizer_path", "tokenizer = bpe takes a tokenizer.json; this file is of another format")
    flavor = flavor_of(this.text("model.name", "llama3"), this.text("model.flavor", "debugmodel"))
    if flavor is not None and flavor.packs:
        pack(this)
    name = this.text("training.dataset", "c4_test")
    _source(this, name, "training.dataset", "training.dataset_path", has_tokenizer=bool(folder))
    if not this.flag("validation.enabled", False) and not this.flag("validation.enable", False):
        return
    held = this.text("validation.dataset", "c4_validation")
    own = _source(this, held, "validation.dataset", "validation.dataset_path", has_tokenizer=bool(folder))
    steps = this.whole("validation.steps", -1)
    this.draft.set("eval.validation.source", own)
    this.draft.set("eval.validation.every", STEP_COUNT.spell(this.whole("validation.freq", 10)))
    batches = f"{steps} * mesh.data_ranks" if steps > 0 else "all"
    this.draft.set("eval.validation.batches", batches)
    this.draft.set(f"mixture.{word(name, 'data')}", "1", f"{own} is for validation alone")
    this.took("validation.enabled", "eval validation { … }")
    this.took("validation.enable", "eval validation { … }")
    this.took("validation.freq", f"eval.validation.every = {this.whole('validation.freq', 10)} steps")
    ranks = "one step there is a microbatch of each data rank; here, all of them are counted"
    this.took("validation.steps", f"eval.validation.batches = {batches}", ranks if steps > 0 else "")
    for key in ("validation.local_batch_size", "validation.seq_len"):
        this.lost(key, "an evaluation has the microbatch and the length of training")


def _source(this: Importing, dataset: str, key: str, path_key: str, has_tokenizer: bool) -> str:
    """The name of the source made of a data set."""
    name, path = word(dataset, "data"), this.text(path_key, "").rstrip("/")
    if path and has_tokenizer:
        value, how = f"jsonl {{ path = {quoted(path + '/*.json*')} }}", "lines of JSON with a `text` are expected in it"
    elif path:
        value, how = f"tokens {{ path = {quoted(path + '/*.npy')} }}", "token ids are expected in it, as .npy"
    else:
        value, how = f"tokens {{ path = {quoted(f'data/{name}/*.npy')} }}", ""
    self_made = not path
    this.draft.set(f"sources.{name}", value, "write its token ids here" if self_made else "")
    if self_made:
        this.lost(key, f"a data set is files, never a name that is fetched: write its token ids to data/{name}")
        if key not in this.values:
            this.assumed.append(f"data: {dataset}, the default of torchtitan; write its token ids to data/{name}")
    else:
        this.took(key, f"sources.{name}")
        this.took(path_key, f"sources.{name} = {value}", how)
    return name


def optimizer(this: Importing) -> None:
    """AdamW, and what else has no equivalent."""
    name = this.text("optimizer.name", "AdamW")
    this.draft.root.at("optimizer").text = "adamw"
    if name == "AdamW":
        this.took("optimizer.name", "optimizer = adamw")
    else:
        this.lost(
            "optimizer.name",
            f"adamw stands for {name}, as it is the only optimizer of this version: choose its rate anew",
        )
        this.draft.root.at("optimizer").comment = f"{name} has no equivalent: choose the rate anew"
    text = f"[{this.number('optimizer.beta1', '0.9')}, {this.number('optimizer.beta2', '0.95')}]"
    if text != "[0.9, 0.95]" or {"optimizer.beta1", "optimizer.beta2"} & set(this.values):
        this.draft.set("optimizer.betas", text)
    for key in ("optimizer.beta1", "optimizer.beta2"):
        this.took(key, f"optimizer.betas = {text}")
    this.draft.set("optimizer.decay_embeddings", "true", "all decay there, norms too")


def schedule(this: Importing) -> None:
    """Warm-up, a stable part where a share of the run decays, and the decay."""
    steps = this.whole("training.steps", 10_000)
    asked = this.whole("lr_scheduler.warmup_steps", 200)
    warmup, kind = min(asked, steps), this.text("lr_scheduler.decay_type", "linear")
    ratio = this.real("lr_scheduler.decay_ratio", 0) if "lr_scheduler.decay_ratio" in this.values else None
    floor_key = next((k for k in ("lr_scheduler.min_lr_factor", "lr_scheduler.lr_min") if k in this.values), "")
    if kind not in ("linear", "cosine", "sqrt"):
        this.lost("lr_scheduler.decay_type", "a decay is linear, a cosine, or 1 - sqrt; linear is taken")
        kind = "linear"
    shape = "wsd" if ratio is not None or kind == "sqrt" else kind
    node = this.draft.root.at("schedule")
    node.text = shape
    how = "a rise of W steps gives update k the factor k/W here, k/(W+1) there"
    how += f"; no longer than the run, of {steps} steps" if asked > steps else ""
    this.put("lr_scheduler.warmup_steps", "schedule.warmup", STEP_COUNT.spell(warmup), how)
    if shape == "wsd":
        decay = steps - warmup if ratio is None else min(round(steps * ratio), steps - warmup)
        spelt = STEP_COUNT.spell(decay)
        share = "" if ratio is None else f"{PORTION.spell(ratio)} of {steps} steps, at most what warm-up leaves"
        this.draft.set("schedule.decay", spelt, share)
        this.draft.set("schedule.shape", kind)
        this.took("lr_scheduler.decay_ratio", f"schedule.decay = {spelt}", share)
    this.took("lr_scheduler.decay_type", f"schedule = {shape}" + (f", shape = {kind}" if shape == "wsd" else ""))
    if floor_key:
        this.put(floor_key, "schedule.floor", PORTION.spell(this.real(floor_key, 0)))


def precision(this: Importing) -> None:
    """Stored parameters, and the seed, which one of two keys may give."""
    words = {"bfloat16": "bf16", "float32": "fp32"}
    name = this.text("training.dtype", "float32")
    if name in words:
        if words[name] == "bf16":
            this.draft.set("precision.params", "bf16")
            this.draft.set("precision.moments", "bf16", "in the dtype of the parameters, as there")
        this.took("training.dtype", f"precision.params = {words[name]}")
    else:
        this.lost("training.dtype", "there is no loss scaler: bf16 and fp32 are what there is")
    seeds = [key for key in ("training.seed", "debug.seed") if key in this.values]
    if seeds:
        this.put(seeds[-1], "seed", show_amount(this.whole(seeds[-1], 0)))
        this.took(seeds[0], f"seed = {this.whole(seeds[-1], 0)}")
    else:
        this.assumed.append("seed: 0; there, a run without a seed draws one")


def pipeline(this: Importing) -> None:
    """The schedule of a pipeline, and where its stages begin."""
    degree = degrees(this)["pp"]
    if degree < 2:
        return
    at = "parallelism.pipeline_parallel_"
    name = this.text(f"{at}schedule", "1F1B")
    ours = {key.lower(): word for key, word in _PIPELINES.items()}.get(name.lower())
    if ours is None:
        this.lost(
            f"{at}schedule", f"no schedule of that name: one_f_one_b is taken, of {', '.join(_PIPELINES.values())}"
        )
    elif ours != "one_f_one_b" or f"{at}schedule" in this.values:
        this.put(f"{at}schedule", "apply.pp.schedule", ours)
    if this.values.get(f"{at}schedule_csv"):
        this.lost(f"{at}schedule_csv", "a schedule is one of those of the language, never a file")
    for end, field in (("first", "embedding"), ("last", "head")):
        key = f"{at}{end}_stage_less_layers"
        weight = this.whole(key, 1)
        if weight != 1:
            this.put(key, f"apply.pp.weights.{field}", str(weight))
        this.took(key, f"apply.pp.weights.{field} = {weight}")
    _stages(this, at, degree)


def _stages(this: Importing, at: str, degree: int) -> None:
    points = this.texts(f"{at}split_points")
    layers = [re.fullmatch(r"layers\.(\d+)", point) for point in points]
    if points and all(layers):
        cuts = f"[{', '.join(found[1] for found in layers if found)}]"
        this.put(f"{at}split_points", "apply.pp.cuts", cuts)
        stages = len(points) + 1
        if stages > degree and stages % degree == 0:
            this.draft.set("apply.pp.stages_per_rank", str(stages // degree))
    elif points:
        this.lost(f"{at}split_points", "a stage begins before a layer: apply.pp.cuts takes their numbers")
    if this.values.get("parallelism.module_fqns_per_model_part"):
        this.lost("parallelism.module_fqns_per_model_part", "name the layers before which stages begin: apply.pp.cuts")
    if f"{at}layers_per_stage" in this.values:
        this.lost(
            f"{at}layers_per_stage",
            "say apply.pp.stages_per_rank: layers are dealt to the stages by weight",
        )


def context(this: Importing) -> None:
    """How parts of a sequence meet."""
    if degrees(this)["cp"] < 2:
        return
    key = "parallelism.context_parallel_rotate_method"
    words = {"allgather": "all_gather", "alltoall": "ring"}
    method = this.text(key, "allgather")
    if method in words:
        how = "parts are passed round; the numbers are the same" if method == "alltoall" else ""
        this.put(key, "apply.cp.attention", words[method], how)
    else:
        this.lost(key, "keys and values are gathered, or passed round")
    balancer = "parallelism.context_parallel_load_balancer"
    if this.values.get(balancer) == "headtail":
        this.took(balancer, "apply.cp.balance = head_tail")
    elif balancer in this.values:
        this.lost(balancer, "the parts are head and tail, which is exact for causal attention")


def sharding(this: Importing) -> None:
    """When gathered parameters are freed, and where shards live."""
    key = "parallelism.fsdp_reshard_after_forward"
    policy, piped = this.text(key, "default"), degrees(this)["pp"] > 1
    if policy not in ("default", "always", "never"):
        this.lost(key, "default, always and never are what there is")
    elif policy != "default" or piped:
        text = "never" if piped and policy == "default" else policy
        how = "the default there is never, in a pipeline" if piped and policy == "default" else ""
        this.put(key, "apply.fsdp.reshard", text, how, comment="never in a pipeline, as there" if how else "")
    else:
        this.took(key, "the default of fsdp")
    if this.flag("training.enable_cpu_offload", False):
        this.put("training.enable_cpu_offload", "apply.fsdp.offload", "true")


def recompute(this: Importing) -> None:
    """Activation checkpointing; every second block is the default there."""
    key, option = "activation_checkpoint.mode", "activation_checkpoint.selective_ac_option"
    mode = this.text(key, "selective")
    if mode == "full":
        this.put(key, "apply.recompute.mode", "full")
    elif mode == "selective":
        chosen = str(this.values.get(option, "2"))
        every = chosen.isdigit() and int(chosen) > 0
        ours = "every" if every else "selective"
        this.put(key, "apply.recompute.mode", ours)
        if every:
            this.draft.set("apply.recompute.every", chosen)
        how = (
            "" if every else "results of products, attention and exchanges are kept; there, every second product is not"
        )
        this.took(option, f"apply.recompute.mode = {ours}", how)
    elif mode == "memory_budget":
        share = PORTION.spell(this.real("activation_checkpoint.memory_budget", "0.5"))
        this.put(key, "apply.recompute.mode", "budget")
        this.put("activation_checkpoint.memory_budget", "apply.recompute.budget", share)
    elif mode == "none":
        this.took(key, "no recompute")
    else:
        this.lost(key, "none, selective, full and memory_budget are what there is")


def float8(this: Importing) -> None:
    """The converters of the model; float8 has its own section."""
    converters = this.texts("model.converters")
    wanted = [name for name in converters if name in _FLOAT8]
    foreign = [name for name in converters if name not in _FLOAT8]
    if foreign:
        this.lost("model.converters", f"{', '.join(foreign)} has no equivalent: fp8 of linear layers is what there is")
    elif converters:
        this.took("model.converters", "apply = [fp8 { … }]")
    if not wanted:
        return
    at = next((name for name in _FLOAT8 if any(key.startswith(f"{name}.") for key in this.values)), wanted[0])
    recipe, recipe_key = this.text(f"{at}.recipe_name", "tensorwise"), f"{at}.recipe_name"
    how = "gradients of weights are in float8 too" if recipe == "rowwise_with_gw_hp" else ""
    this.put(recipe_key, "apply.fp8.recipe", "tensorwise" if recipe == "tensorwise" else "rowwise", how)
    _excluded(this, f"{at}.filter_fqns")
    if this.flag(f"{at}.enable_fsdp_float8_all_gather", False):
        this.put(f"{at}.enable_fsdp_float8_all_gather", "apply.fp8.all_gather", "true")
        this.took(f"{at}.precompute_float8_dynamic_scale_for_fsdp", "scales are computed after each update")
    if this.flag(f"{at}.emulate", False):
        this.put(f"{at}.emulate", "apply.fp8.emulate", "true")
    for key in (f"{at}.moe_fqns", f"{at}.moe_fqns_prototype"):
        if this.values.get(key):
            this.lost(key, "experts stay in the dtype of computation")
    for key in [key for key in this.values if key.startswith(f"{at}.") and key not in this.rows]:
        this.ignored(key, "nothing is asked for")


def _excluded(this: Importing, key: str) -> None:
    fqns = this.texts(key)
    small = "auto_filter_small_kn" in fqns
    names = [name for name in fqns if name != "auto_filter_small_kn" and "router" not in name]
    unknown = [name for name in names if name not in _FQNS]
    patterns = [_FQNS[name] for name in names if name in _FQNS]
    text = f"[{', '.join(map(quoted, patterns))}]"
    this.draft.set("apply.fp8.exclude", text)
    this.draft.set("apply.fp8.small", "skip" if small else "convert")
    if unknown:
        this.lost(key, f"no pattern is known for {', '.join(unknown)}: add it to apply.fp8.exclude")
    else:
        this.took(key, f"apply.fp8.exclude = {text}", "names are those of our modules; a router never is in float8")


def compiling(this: Importing) -> None:
    """torch.compile, of the section or of the older key."""
    if not (this.flag("compile.enable", False) or this.flag("training.compile", False)):
        return
    components = this.texts("compile.components") or ["model", "loss"]
    this.draft.set("apply.compile", "")
    for key in ("compile.enable", "training.compile"):
        this.took(key, "apply = [compile]")
    if "loss" not in components:
        this.draft.set("apply.compile.loss", "false")
    this.took("compile.components", f"apply.compile.loss = {'true' if 'loss' in components else 'false'}")
    backend = this.text("compile.backend", "inductor")
    if backend in ("inductor", "aot_eager", "eager"):
        if backend != "inductor":
            this.draft.set("apply.compile.backend", backend)
        this.took("compile.backend", f"apply.compile.backend = {backend}")
    else:
        this.lost("compile.backend", "inductor, aot_eager and eager are what there is")


def checkpoints(this: Importing) -> None:
    """Cadence and retention, if checkpoints are switched on."""
    switch = "checkpoint.enable" if "checkpoint.enable" in this.values else "checkpoint.enable_checkpoint"
    if not this.flag(switch, False):
        this.took(switch, "checkpoint.every = none", "the end of a run, and a stop signal, save all the same")
        return
    this.took(switch, "checkpoint.every")
    this.put("checkpoint.interval", "checkpoint.every", STEP_COUNT.spell(this.whole("checkpoint.interval", 500)))
    keep = this.whole("checkpoint.keep_latest_k", 10)
    this.put("checkpoint.keep_latest_k", "checkpoint.keep", show_amount(keep) if keep > 0 else "all")
    step = this.whole("checkpoint.load_step", -1)
    if step >= 0:
        this.put("checkpoint.load_step", "checkpoint.resume", STEP_COUNT.spell(step))
    lost: dict[str, tuple[str, tuple[Any, ...]]] = {
        "checkpoint.initial_load_path": (
            "a run begins from its seed: weights are not read in this version",
            ("", None),
        ),
        "checkpoint.async_mode": ("a save is over before the next step begins", ("disabled",)),
        "checkpoint.last_save_in_hf": ("this version exports no HuggingFace folders", (False,)),
        "checkpoint.exclude_from_loading": ("a resumed run takes everything", ([], "")),
        "checkpoint.enable_first_step_checkpoint": ("name a step to save in checkpoint.every", (False,)),
        "checkpoint.create_seed_checkpoint": ("a layout of any size begins with the same weights", (False,)),
    }
    for key, (why, unless) in lost.items():
        if this.values.get(key, unless[0]) not in unless:
            this.lost(key, why)
        else:
            this.ignored(key, "nothing is asked for")
    for key in [key for key in this.values if key.startswith("checkpoint.") and key not in this.rows]:
        this.ignored(key, "the run's own folder holds its checkpoints, whole, as a resumed run needs them")


def sinks(this: Importing) -> None:
    """TensorBoard is off there unless it is asked for."""
    wanted = this.flag("metrics.enable_tensorboard", False)
    text = "[tensorboard]" if wanted else "[]"
    this.put("metrics.enable_tensorboard", "metrics.sinks", text)
