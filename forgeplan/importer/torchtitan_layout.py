"""Which keys of a torchtitan file make its layout: mesh, pipeline, recompute, float8?"""

from __future__ import annotations

import re

from forgeplan.importer.cluster import place
from forgeplan.importer.rules import Importing
from forgeplan.importer.spelling import (
    PORTION,
    quoted,
)

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
