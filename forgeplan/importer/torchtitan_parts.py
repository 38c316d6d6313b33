"""Which keys of a torchtitan file only mean something together? What is trained; the layout stands beside this file."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from forgeplan.dsl.units import show_amount
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
from forgeplan.importer.torchtitan_layout import degrees
from forgeplan.importer.torchtitan_models import LLAMA3_ORIGINAL, REFUSED, flavor_of, flavors_of

LEARNING_RATE, EPSILON, WEIGHT_DECAY = Decimal("8e-4"), Decimal("1e-8"), Decimal("0.1")
_BATCH = "training.local_batch_size"


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
