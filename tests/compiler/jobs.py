"""Which job stands behind a test of the compiler? One made of Python values, without any text.

The context is an 8B model on four H200 of one node; `job(**{"mesh.dp_replicate": 2})` varies it as a plan file would.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import attrs

from forgeplan.compiler import derived_values
from forgeplan.diagnostics.span import NOWHERE, Span
from forgeplan.spec import types as t
from forgeplan.spec.job import Job
from forgeplan.spec.plan import Plan
from forgeplan.spec.provenance import Leaf, Origin
from forgeplan.spec.quantity import NUMBER, SHARE, STEPS, TOKENS, Quantity
from forgeplan.spec.registry import components
from forgeplan.spec.setting import DERIVED, attribute_name, settings_of

GiB = 2**30

CONTEXT: dict[str, Any] = {
    "cluster.nodes": 1,
    "cluster.devices_per_node": 4,
    "cluster.arch": "sm90",
    "cluster.hbm": 141 * 10**9,
    "cluster.bf16": Fraction(989 * 10**12),
    "model": "decoder",
    "model.layers": 32,
    "model.dim": 4096,
    "model.heads": 32,
    "model.kv_heads": 8,
    "model.ffn": 14_336,
    "model.vocab": 128_256,
    "model.context": 4096,
    "batch.global": Quantity(2 * 2**20, TOKENS),
    "batch.micro": 4,
    "batch.length": 4096,
    "optimizer": "adamw",
    "optimizer.lr": Fraction(3, 10_000),
    "schedule": "cosine",
    "sources": {"web": "tokens"},
    "sources.web.path": "web/*.npy",
    "budget.tokens": 160 * 10**9,
}
DEFAULTS: dict[str, Any] = {
    "seed": 0,
    "cluster.hbm": None,
    "cluster.bf16": None,
    "model.ffn_multiplier": Fraction(1),
    "model.mlp": "swiglu",
    "model.rope.theta": Fraction(10_000),
    "model.rope.scaling": None,
    "model.norm": "rms",
    "model.norm_eps": Fraction(1, 100_000),
    "model.qk_norm": False,
    "model.bias": False,
    "model.tie": False,
    "model.window": None,
    "model.softcap": None,
    "model.dropout": Fraction(0),
    "model.init_std": Fraction(1, 50),
    "model.pad_vocab": "auto",
    "model.attention": "auto",
    "model.mtp": 0,
    "model.moe": None,
    "model.moe.every": 1,
    "model.moe.first_dense": 0,
    "model.moe.shared": 0,
    "model.moe.router": "softmax_topk",
    "model.moe.router.renormalise": True,
    "model.moe.router.scale": Fraction(1),
    "model.moe.router.rate": Fraction(1, 1000),
    "model.moe.router.rate_schedule": "constant",
    "model.moe.groups": 1,
    "model.moe.capacity": None,
    "model.moe.balance": Fraction(0),
    "model.moe.sequence_balance": Fraction(0),
    "model.moe.z": Fraction(0),
    "model.moe.scale_gradients": False,
    "tokenizer": None,
    "precision.params": "fp32",
    "precision.compute": "bf16",
    "precision.reduce": "fp32",
    "precision.moments": "fp32",
    "mixture": None,
    "batch.pack": False,
    "optimizer.betas": (Fraction(9, 10), Fraction(95, 100)),
    "optimizer.eps": Fraction(1, 10**8),
    "optimizer.weight_decay": Fraction(1, 10),
    "optimizer.decay_embeddings": False,
    "schedule.warmup": Quantity(0, STEPS),
    "schedule.floor": Fraction(0),
    "schedule.shape": "sqrt",
    "loss": "cross_entropy",
    "loss.z": Fraction(0),
    "loss.mtp": Fraction(3, 10),
    "mesh.pp": 1,
    "mesh.dp_replicate": 1,
    "mesh.dp_shard": "auto",
    "mesh.cp": 1,
    "mesh.tp": 1,
    "mesh.ep": 1,
    "apply": {},
    "budget.tokens": None,
    "budget.wall": None,
    "checkpoint.every": None,
    "checkpoint.keep": 3,
    "checkpoint.path": "runs/example",
    "checkpoint.resume": "auto",
    "guard.clip": Fraction(1),
    "guard.nonfinite": "skip",
    "guard.nonfinite.budget": 10,
    "metrics.every": 10,
    "metrics.sinks": (),
    "eval": {},
    "apply.*.reshard": "default",
    "apply.*.offload": False,
    "apply.*.mode": "full",
    "apply.*.every": 2,
    "apply.*.budget": Fraction(1, 2),
    "apply.*.only": None,
    "apply.*.backend": "inductor",
    "apply.*.fullgraph": False,
    "apply.*.loss": True,
    "apply.*.recipe": "tensorwise",
    "apply.*.include": "all",
    "apply.*.exclude": ("head",),
    "apply.*.small": "skip",
    "apply.*.all_gather": False,
    "apply.*.emulate": False,
    "apply.*.sequence": True,
    "apply.*.kv": "shard",
    "apply.*.attention": "all_gather",
    "apply.*.balance": "head_tail",
    "apply.*.hierarchical": False,
    "apply.*.schedule": "one_f_one_b",
    "apply.*.stages_per_rank": 1,
    "apply.*.cuts": None,
    "apply.pp.weights.embedding": 1,
    "apply.pp.weights.head": 1,
    "sources.*.dtype": None,
    "sources.*.shuffle": True,
    "sources.*.states": 16,
    "sources.*.noise": Fraction(0),
    "sources.*.document": None,
    "sources.*.column": "text",
    "eval.*.split": None,
    "eval.*.batches": "all",
    "model.rope.scaling.low": Fraction(1),
    "model.rope.scaling.high": Fraction(4),
    "model.rope.scaling.fast": Fraction(32),
    "model.rope.scaling.slow": Fraction(1),
}

FOLLOWING = {
    "model.kv_heads": "model.heads",
    "model.moe.ffn": "model.ffn",
    "model.moe.group_limit": "model.moe.groups",
}
"""Fields that have the value of another one where they are not written."""


def job(changes: Mapping[str, Any] | None = None, *, name: str = "example", base: Mapping[str, Any] = CONTEXT) -> Job:
    """The context with changes; a path set to None is `none`, and one set to `...` is not written."""
    written = {**base, **(changes or {})}
    return _Maker({k: v for k, v in written.items() if v is not ...}, name).job()


def tokens(amount: int) -> Quantity:
    return Quantity(amount, TOKENS)


def steps(amount: int) -> Quantity:
    return Quantity(amount, STEPS)


def share(percent: int | Fraction) -> Quantity:
    return Quantity(Fraction(percent) / 100, SHARE)


def ratio(amount: int) -> Quantity:
    return Quantity(amount, NUMBER)


class _Maker:
    def __init__(self, written: dict[str, Any], name: str) -> None:
        self.written = written
        self.name = name
        self.leaves: dict[str, Leaf] = {}
        self.blocks: dict[str, Any] = {}
        self.derived: dict[str, Any] = {}

    def job(self) -> Job:
        plan = self.block(Plan, "")
        for path, found in derived_values().items():
            if path not in self.leaves:
                self.derived[path] = self.compute(found)
        return Job(
            self.name,
            self.name.partition("@")[0],
            "example.forge",
            ".",
            self.leaves,
            self.blocks,
            plan,
            self.derived,
            (),
            {"example.forge": "0" * 64},
            lambda values: job({**self.written, **values}, name=self.name, base={}),
            Span("example.forge", 0, 0),
            bare=self.bare,
        )

    def bare(self, name: str) -> tuple[dict[str, Leaf], Any]:
        other = _Maker({k: v for k, v in self.written.items() if not k.startswith("apply")}, self.name)
        made = other.component(t.Component("operation"), f"apply.{name}", name)
        return other.leaves, made

    def block(self, cls: type, at: str) -> Any:
        values = {}
        for name, setting in sorted(settings_of(cls).items(), key=lambda item: item[0] in ("apply", "checkpoint")):
            path = f"{at}.{name}".lstrip(".")
            values[attribute_name(name, cls)] = self.value(setting.type, path, setting.default is DERIVED)
        made = cls(**values)
        if at:
            self.blocks[at] = made
        return made

    def value(self, type_: t.FieldType, path: str, is_derived: bool) -> Any:
        container = next(
            (a for a in getattr(type_, "alternatives", (type_,)) if isinstance(a, t.Block | t.Component | t.MapOf)),
            type_,
        )
        if isinstance(container, t.Block) and not (type_ is not container and not self.has(path)):
            return self.block(container.block, path)
        if isinstance(container, t.Component) and self.raw(path, is_derived) is not None:
            return self.component(container, path, self.raw(path, is_derived))
        if isinstance(type_, t.ListOf) and type_.keyed:
            self.leaf(path, tuple(self.raw(path, False)))
            return self.keep(path, tuple(self.component(type_.item, f"{path}.{n}", n) for n in self.raw(path, False)))
        if path == "sources" or isinstance(type_, t.NodesOf):
            return self.keep(path, {n: self.entry(type_, f"{path}.{n}", v) for n, v in self.raw(path, False).items()})
        if path == "mixture" and self.raw(path, False) is not None:
            self.leaf(path, self.raw(path, False))
            return self.keep(path, self.raw(path, False))
        value = self.raw(path, is_derived)
        if value == "auto" and path in derived_values():
            value = self.compute(derived_values()[path])
        self.leaf(path, value)
        return value

    def entry(self, type_: Any, path: str, tag: Any) -> Any:
        if isinstance(type_, t.NodesOf):
            return self.block(type_.block, path)
        return self.component(type_.value, path, tag)

    def component(self, type_: Any, path: str, tag: str) -> Any:
        self.leaf(path, tag)
        return self.block(components(type_.kind)[tag], path)

    def keep(self, path: str, value: Any) -> Any:
        self.blocks[path] = value
        return value

    def has(self, path: str) -> bool:
        return any(p.startswith(path + ".") for p in self.written)

    def raw(self, path: str, is_derived: bool) -> Any:
        if path in self.written:
            return self.written[path]
        if is_derived:
            return self.compute(derived_values()[path])
        if path == "model.head_dim":
            return self.written["model.dim"] // self.written["model.heads"]
        if path in FOLLOWING:
            return self.read(FOLLOWING[path])
        head, _, last = path.rpartition(".")
        general = f"{head.rpartition('.')[0]}.*.{last}"
        return DEFAULTS[path] if path in DEFAULTS else DEFAULTS[general]

    def leaf(self, path: str, value: Any) -> None:
        if path in self.written:
            start = 100 * list(self.written).index(path)
            span, layer = Span("example.forge", start, start + 10), "plan example"
        else:
            span, layer = NOWHERE, "schema default"
        text = str(self.written.get(path, DEFAULTS.get(path, value)))
        self.leaves[path] = Leaf(value, (Origin(span, layer, text),))

    def compute(self, found: Any) -> Any:
        return found.compute(*(self.read(path) for path in found.reads))

    def read(self, path: str) -> Any:
        if path in self.leaves:
            return self.leaves[path].value if path not in self.blocks else self.blocks[path]
        if path in self.blocks:
            return self.blocks[path]
        if path in derived_values() and path not in self.written:
            return self.compute(derived_values()[path])
        return self.value(_type_of(path), path, False)


def _type_of(path: str) -> t.FieldType:
    from forgeplan.compiler.schema import setting_at

    setting = setting_at(path, {"model": Leaf("decoder", ()), "optimizer": Leaf("adamw", ())})
    assert setting is not None
    return setting.type


def evolve(job: Job, **changes: Any) -> Job:
    return attrs.evolve(job, **changes)
