"""Which keys of a KempnerForge file only mean something together?"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from forgeplan.dsl.units import show_amount
from forgeplan.importer.cluster import place
from forgeplan.importer.rules import Importing
from forgeplan.importer.spelling import PORTION, SEQUENCE_COUNT, STEP_COUNT, TOKEN_COUNT, Members, real

_AXES = ("pp", "dp_replicate", "cp", "tp")
_ROUTERS = {"softmax_topk": "softmax_topk", "sigmoid_topk": "sigmoid_topk"}
_BIAS = {"constant": "constant", "cosine_decay": "cosine", "linear_warmup": "warmup"}
_PIPELINES = Members({"1f1b": "one_f_one_b", "gpipe": "gpipe", "interleaved_1f1b": "interleaved"})
_DECAYS = ("cosine", "linear", "sqrt")


def model(this: Importing) -> None:
    """A decoder, by its fields."""
    this.draft.root.at("model").text = "decoder"
    if any(key.startswith(("vlm.", "model.vlm.", "vision_encoder.")) for key in this.values):
        this.draft.root.at("model").comment = "the text model alone: images have no equivalent"


def experts(this: Importing) -> None:
    """The block of experts, if there are any."""
    count = this.whole("model.num_experts", 0)
    if count <= 0:
        return
    this.put("model.num_experts", "model.moe.experts", show_amount(count))
    this.put("model.moe_top_k", "model.moe.top_k", show_amount(this.whole("model.moe_top_k", 2)))
    for key, field, default in (("moe_frequency", "every", 1), ("moe_shared_experts", "shared", 0)):
        value = this.whole(f"model.{key}", default)
        if value != default:
            this.put(f"model.{key}", f"model.moe.{field}", show_amount(value))
        this.took(f"model.{key}", f"model.moe.{field} = {value}")
    _losses(this)
    _router(this)
    if this.flag("model.moe_gradient_scale", False):
        this.put("model.moe_gradient_scale", "model.moe.scale_gradients", "true")
    else:
        this.took("model.moe_gradient_scale", "model.moe.scale_gradients = false")
    this.ignored("model.moe_packed_experts", "experts are always one tensor a projection")


def _losses(this: Importing) -> None:
    weight = this.real("model.moe_aux_loss_weight", "0.01")
    this.put("model.moe_aux_loss_weight", "model.moe.balance", show_amount(weight))
    capacity = this.real("model.moe_capacity_factor", 0)
    if capacity > 0:
        this.put("model.moe_capacity_factor", "model.moe.capacity", show_amount(capacity))
    else:
        this.took("model.moe_capacity_factor", "model.moe.capacity = none")
    sequence = this.real("model.moe_sequence_aux_loss_weight", 0)
    if sequence > 0:
        how = "the loss is of each sequence, as in DeepSeek-V3; there, of all tokens at once"
        this.put("model.moe_sequence_aux_loss_weight", "model.moe.sequence_balance", show_amount(sequence), how)
    else:
        this.took("model.moe_sequence_aux_loss_weight", "model.moe.sequence_balance = 0")


def _router(this: Importing) -> None:
    name = this.text("model.moe_router", "softmax_topk")
    if name not in _ROUTERS:
        this.lost("model.moe_router", "softmax_topk and sigmoid_topk are what there is")
        return
    how = "gates are the scores without the bias, which only chooses" if name == "sigmoid_topk" else ""
    if name == "sigmoid_topk":
        this.draft.root.at("model.moe.router").text = name
    this.took("model.moe_router", f"model.moe.router = {name}", how)
    schedule = this.text("model.moe_bias_schedule", "constant")
    if name == "sigmoid_topk" and schedule in _BIAS:
        if schedule != "constant":
            this.draft.set("model.moe.router.rate_schedule", _BIAS[schedule])
        this.took("model.moe_bias_schedule", f"model.moe.router.rate_schedule = {_BIAS[schedule]}")
    elif name == "sigmoid_topk":
        this.lost("model.moe_bias_schedule", f"{', '.join(_BIAS)} are what both have")
    else:
        this.ignored("model.moe_bias_schedule", "a softmax router has no bias")


def degrees(this: Importing) -> dict[str, int]:
    """The mesh without the axes that shard and that hold experts, each degree at least 1."""
    return {axis: max(1, this.whole(f"distributed.{axis}", 1)) for axis in _AXES}


def mesh(this: Importing) -> None:
    """Degrees. There, ep is an axis of its own; here, it borrows its ranks from dp_shard."""
    others, shard, ep = degrees(this), this.whole("distributed.dp_shard", -1), max(1, this.whole("distributed.ep", 1))
    world = place(this, {**others, "ep": ep}, shard if shard > 0 else None, "distributed.dp_shard takes what there is")
    for axis, degree in others.items():
        if degree > 1:
            this.draft.set(f"mesh.{axis}", str(degree))
        this.took(f"distributed.{axis}", f"mesh.{axis} = {degree}")
    ours, how = world.dp_shard * ep, ""
    if ep > 1:
        how = f"ep is an axis of its own there: {world.dp_shard} × {ep} ranks hold what dp_shard and ep hold here"
    if shard > 0 and ours > 1:
        this.draft.set("mesh.dp_shard", str(ours), f"{shard} × ep {ep}" if ep > 1 else "")
    this.took("distributed.dp_shard", f"mesh.dp_shard = {ours if shard > 0 else 'auto'}", how)
    if ep > 1:
        this.draft.set("mesh.ep", str(ep))
    this.took("distributed.ep", f"mesh.ep = {ep}")


def batch(this: Importing) -> None:
    """Sequences of one rank and microbatches of a step; ranks of one ep group read the same sequences there."""
    size, rounds = this.whole("train.batch_size", 8), this.whole("train.grad_accum_steps", 1)
    ep = max(1, this.whole("distributed.ep", 1))
    how = f"ranks of an ep group of {ep} read the same sequences there, and divide them here" if ep > 1 else ""
    micro, times = size, rounds
    if ep > 1 and size % ep == 0:
        micro = size // ep
    elif ep > 1 and rounds % ep == 0:
        times = rounds // ep
    elif ep > 1:
        how = f"a step has {ep} times the sequences: neither batch_size nor grad_accum_steps is a multiple of ep"
    this.put("train.grad_accum_steps", "batch.accumulation", show_amount(times), how if times != rounds else "")
    this.put("train.batch_size", "batch.micro", SEQUENCE_COUNT.spell(micro), how if times == rounds else "")
    this.put("train.seq_len", "batch.length", TOKEN_COUNT.spell(this.whole("train.seq_len", 2048)))


def precision(this: Importing) -> None:
    """One word there says what is stored and what is computed in; sums over ranks are in fp32."""
    key, word = "train.mixed_precision", this.text("train.mixed_precision", "bf16")
    if word == "fp16":
        this.lost(key, "there is no loss scaler: bf16 is taken")
        word = "bf16"
    if word == "fp32":
        this.draft.set("precision.compute", "fp32")
        this.took(key, "precision = { params = fp32, compute = fp32 }")
        return
    if word not in ("bf16", "fp8", "fp32"):
        this.lost(key, "bf16, fp32 and fp8 are what both have; bf16 is taken")
    this.draft.set("precision.params", "bf16", "stored so too, as there; fp32 keeps small updates")
    this.draft.set("precision.moments", "bf16", "in the dtype of the parameters")
    if word == "fp8":
        tensor_parallel = degrees(this)["tp"] > 1
        this.draft.set("apply.fp8.recipe", "tensorwise")
        this.draft.set("apply.fp8.exclude", "[]", "the head too, as there")
        this.draft.set("apply.fp8.small", "convert")
        if not tensor_parallel:
            this.draft.set("apply.fp8.all_gather", "true")
    this.supposed(key, "precision = { params = bf16, moments = bf16 }")
    if key not in this.rows:
        this.took(key, "precision = { params = bf16, moments = bf16 }" + (", apply = [fp8]" if word == "fp8" else ""))


def optimizer(this: Importing) -> None:
    """AdamW; other optimizers have no equivalent, and their rate is none for it."""
    name, node = this.text("optimizer.name", "adamw"), this.draft.root.at("optimizer")
    node.text = "adamw"
    rate = this.real("optimizer.lr", "3e-4")
    own = this.values.get("optimizer.muon_adam_lr") if name == "muon" else None
    if name == "adamw":
        this.took("optimizer.name", "optimizer = adamw")
    else:
        node.comment = f"{name} has no equivalent: choose the rate anew"
        this.lost(
            "optimizer.name",
            f"adamw stands for {name}, as it is the only optimizer of this version: choose its rate anew",
        )
        for key in this.values:
            if key.startswith(("optimizer.muon_", "optimizer.schedule_free_")) and key != "optimizer.muon_adam_lr":
                this.lost(key, f"an option of {name}, which has no equivalent")
    if own is not None:
        this.put("optimizer.muon_adam_lr", "optimizer.lr", this.number("optimizer.muon_adam_lr", 1))
        this.lost("optimizer.lr", "the rate of muon's matrices; muon_adam_lr, of its AdamW, is taken")
    else:
        this.put("optimizer.lr", "optimizer.lr", show_amount(rate))
    _betas(this)
    this.draft.set("optimizer.decay_embeddings", "true", "every matrix decays there")


def _betas(this: Importing) -> None:
    betas = this.values.get("optimizer.betas")
    if betas is None:
        return
    numbers: list[Any] = [real(beta) for beta in betas] if isinstance(betas, list) else []
    if len(numbers) != 2 or None in numbers:
        this.lost("optimizer.betas", "two numbers are expected")
        return
    this.put("optimizer.betas", "optimizer.betas", f"[{', '.join(map(show_amount, numbers))}]")


def schedule(this: Importing) -> None:
    """Warm-up, and the decay by name; a decay ends with the run here."""
    name, steps = this.text("scheduler.name", "cosine"), this.whole("train.max_steps", 100_000)
    asked = this.whole("scheduler.warmup_steps", 2000)
    warmup = min(asked, steps)
    if name == "none":
        this.put("scheduler.name", "schedule", "none")
        return
    if name not in ("cosine", "linear", "wsd", "constant", "rex"):
        this.lost("scheduler.name", "cosine, linear, wsd, constant and none are what both have; cosine is taken")
        name = "cosine"
    floor = this.real("scheduler.min_lr_ratio", "0.1")
    ours, how = (name, "") if name != "rex" else _rex(this, floor)
    this.draft.root.at("schedule").text = ours
    this.took("scheduler.name", f"schedule = {ours}", how)
    late = "a rise of W steps gives update k the factor k/W here, (k-1)/W there"
    late += f"; no longer than the run, of {steps} steps" if asked > steps else ""
    this.put("scheduler.warmup_steps", "schedule.warmup", STEP_COUNT.spell(warmup), late)
    if ours == "constant":
        return
    this.put("scheduler.min_lr_ratio", "schedule.floor", PORTION.spell(floor))
    (_wsd if ours == "wsd" else _to_the_end)(this, steps, warmup)


def _rex(this: Importing, floor: Fraction) -> tuple[str, str]:
    alpha = this.real("scheduler.rex_alpha", 1)
    if alpha != 1:
        this.lost(
            "scheduler.rex_alpha", "a power of what is left of the run; linear, which is the first power, is taken"
        )
        return "linear", "what is called rex there is a power of what is left of the run"
    this.took("scheduler.rex_alpha", "schedule = linear")
    rest = "; it is cut off at min_lr_ratio there, and reaches it at the end here" if floor else ""
    return "linear", f"what is called rex there is a straight line with rex_alpha = 1{rest}"


def _to_the_end(this: Importing, steps: int, warmup: int) -> None:
    decay = this.whole("scheduler.decay_steps", steps - warmup)
    if decay == steps - warmup:
        this.took("scheduler.decay_steps", "the rest of the run")
    else:
        this.lost("scheduler.decay_steps", f"a decay takes the rest of the run, {steps - warmup} steps")


def _wsd(this: Importing, steps: int, warmup: int) -> None:
    stable = this.whole("scheduler.stable_steps", 0)
    decay = this.whole("scheduler.decay_steps", max(0, steps - warmup - stable))
    inside = warmup + stable + decay == steps
    this.draft.set("schedule.decay", STEP_COUNT.spell(max(0, min(decay, steps - warmup))))
    how = "" if inside else f"a decay ends with the run, at step {steps}; there, at {warmup + stable + decay}"
    this.took("scheduler.stable_steps", "the steps between warm-up and decay", how)
    this.took("scheduler.decay_steps", f"schedule.decay = {decay} steps", how)
    shape = this.text("scheduler.wsd_decay_type", "cosine")
    if shape in _DECAYS:
        other = "1 - sqrt(p) here, sqrt(1 - p) there" if shape == "sqrt" else ""
        this.put("scheduler.wsd_decay_type", "schedule.shape", shape, other)
    else:
        this.lost("scheduler.wsd_decay_type", "cosine, linear and sqrt are what both have")


def loss(this: Importing) -> None:
    """Cross entropy, whole or in chunks: the numbers are the same."""
    name = this.text("train.loss_fn", "cross_entropy")
    if this.real("train.z_loss_weight", 0) != 0:
        this.draft.root.at("loss").text = "cross_entropy"
    if name in ("cross_entropy", "chunked_cross_entropy"):
        how = (
            "logits are never cut into chunks of tokens here; the numbers are the same"
            if name != "cross_entropy"
            else ""
        )
        this.took("train.loss_fn", "loss = cross_entropy", how)
    else:
        this.lost("train.loss_fn", "cross entropy is what there is")


def program(this: Importing) -> None:
    """The transforms besides fp8: recompute, compile, and the schedule of a pipeline."""
    key, mode = "train.activation_checkpointing", this.text("train.activation_checkpointing", "none")
    if mode in ("full", "selective"):
        how = "results of products, attention and exchanges are kept; there, all but the inside of attention"
        this.put(key, "apply.recompute.mode", mode, how if mode == "selective" else "")
    elif mode == "none":
        this.took(key, "no recompute")
    else:
        this.lost(key, "none, full and selective are what both have")
    if this.flag("train.compile_model", True):
        this.draft.set("apply.compile", "", "" if "train.compile_model" in this.values else "default of kempnerforge")
        this.took("train.compile_model", "apply = [compile]")
        this.supposed("train.compile_model", "apply = [compile]")
    if degrees(this)["pp"] > 1:
        schedule_key = "distributed.pp_schedule"
        ours = _PIPELINES.get(this.text(schedule_key, "1f1b"))
        if ours is None:
            this.lost(schedule_key, f"{', '.join(_PIPELINES.words)} are what both have")
        elif schedule_key in this.values:
            this.put(schedule_key, "apply.pp.schedule", ours)
        this.draft.set("apply.pp.weights.embedding", "0", "layers are dealt evenly, as there")
        this.draft.set("apply.pp.weights.head", "0")
        this.draft.set("apply.fsdp.reshard", "never", "never in a pipeline, as there")


def retention(this: Importing) -> None:
    """How many checkpoints stay, and where the metrics go."""
    keep = this.whole("checkpoint.keep_last_n", 3)
    if "checkpoint.keep_last_n" in this.values:
        this.put("checkpoint.keep_last_n", "checkpoint.keep", show_amount(keep) if keep > 0 else "all")
    wanted = this.flag("metrics.enable_tensorboard", False)
    this.put("metrics.enable_tensorboard", "metrics.sinks", "[tensorboard]" if wanted else "[]")
