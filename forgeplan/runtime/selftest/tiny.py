"""How is a plan made by hand, as small as a model can be that still tells layouts apart?

Self-tests and tests compile nothing: a plan is put together here, in the order that the compiler would give it.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import attrs

from forgeplan.plan.execution_plan import Estimates, ExecutionPlan, TensorFact
from forgeplan.plan.mesh import Mesh
from forgeplan.plan.operations import OPERATIONS, Build, Fsdp, Initialise, Materialise, Operation
from forgeplan.spec.loss.cross_entropy import CrossEntropy
from forgeplan.spec.model.decoder import Decoder, Rope
from forgeplan.spec.model.moe import Moe
from forgeplan.spec.nonfinite.policies import Skip
from forgeplan.spec.optimizer.adamw import AdamW
from forgeplan.spec.plan import Batch, Budget, Checkpoint, Cluster, Guard, Metrics, Plan, Precision
from forgeplan.spec.plan import Mesh as MeshBlock
from forgeplan.spec.quantity import SEQUENCES, STEPS, Quantity
from forgeplan.spec.router.routers import SoftmaxTopk
from forgeplan.spec.schedule.shapes import Cosine


def steps(number: int) -> Quantity:
    return Quantity(number, STEPS)


def decoder(**fields: Any) -> Decoder:
    given: dict[str, Any] = {
        "layers": 2, "dim": 16, "heads": 4, "kv_heads": 2, "head_dim": 4, "ffn": 24, "vocab": 29, "context": 64,
        "ffn_multiplier": Fraction(1), "mlp": "swiglu", "rope": Rope(theta=Fraction(10_000), scaling=None),
        "norm": "rms", "norm_eps": Fraction("1e-5"), "qk_norm": False, "bias": False, "tie": False, "window": None,
        "softcap": None, "dropout": Fraction(0), "init_std": Fraction("0.02"), "pad_vocab": None, "attention": "auto",
        "mtp": 0, "moe": None,
    } | fields  # fmt: skip
    given["pad_vocab"] = given["pad_vocab"] or given["vocab"]
    return Decoder(**given)


def moe(**fields: Any) -> Moe:
    given: dict[str, Any] = {
        "experts": 8, "top_k": 2, "ffn": 12, "every": 1, "first_dense": 0, "shared": 0,
        "router": SoftmaxTopk(renormalise=True), "groups": 1, "group_limit": 1, "capacity": None,
        "balance": Fraction(0), "sequence_balance": Fraction(0), "z": Fraction(0), "scale_gradients": False,
    } | fields  # fmt: skip
    return Moe(**given)


def adamw(**fields: Any) -> AdamW:
    given: dict[str, Any] = {
        "lr": Fraction("1e-2"), "betas": (Fraction("0.9"), Fraction("0.95")), "eps": Fraction("1e-8"),
        "weight_decay": Fraction("0.1"), "decay_embeddings": False,
    } | fields  # fmt: skip
    return AdamW(**given)


COSINE = Cosine(warmup=steps(2), floor=Fraction("0.1"))


def execution_plan(
    *,
    model: Decoder | None = None,
    dtype: str = "fp32",
    precision: Precision | None = None,
    optimizer: AdamW | None = None,
    schedule: Any = COSINE,
    mesh: Mesh | None = None,
    accumulation: int = 1,
    micro: int = 2,
    length: int = 16,
    total_steps: int | None = 5,
    recompute: str | None = None,
    reshard: str | int = "default",
    clip: Fraction | None = Fraction(1),
    nonfinite: Any = None,
    z: Fraction = Fraction(0),
    seed: int = 7,
    wall: Fraction | None = None,
    program: tuple[Operation, ...] | None = None,
    axes: Mapping[str, Mapping[str, Any]] = {},
    transforms: Mapping[str, Mapping[str, Any]] = {},
    nodes: int = 1,
) -> ExecutionPlan:
    """`axes`: options of tp, cp, ep, pp by name, for the axes that the mesh has above 1. `transforms`: further
    operations with their options, by name; `recompute` is the mode of one for all blocks, or each second one."""
    model = model or decoder()
    mesh = mesh or Mesh()
    precision = precision or Precision(params=dtype, compute=dtype, reduce=dtype, moments=dtype)
    program = program or default_program(model, mesh, precision, recompute, reshard, seed, axes, transforms)
    sequences = accumulation * micro * mesh.data_ranks
    global_batch = Quantity(sequences, SEQUENCES)
    job = Plan(
        seed=seed,
        cluster=Cluster(nodes=nodes, devices_per_node=mesh.world // nodes, arch="cpu", hbm=None, bf16=None),
        model=model,
        tokenizer=None,
        precision=precision,
        sources={},
        mixture=None,
        batch=Batch(global_=global_batch, accumulation=accumulation, micro=micro, length=length, pack=False),
        optimizer=optimizer or adamw(),
        schedule=schedule,
        loss=CrossEntropy(z=z, mtp=Fraction("0.3")),
        mesh=MeshBlock(**attrs.asdict(mesh)),
        apply=(),
        budget=Budget(tokens=None, steps=total_steps, wall=wall),
        checkpoint=Checkpoint(every=None, keep=3, path="runs/tiny", resume="auto"),
        guard=Guard(clip=clip, nonfinite=nonfinite or Skip(budget=10)),
        metrics=Metrics(every=1, sinks=()),
        eval={},
    )
    parameters = list(model.parameters())
    estimates = Estimates(
        num_parameters=sum(p.numel for p in parameters),
        num_active_parameters=sum(p.numel for p in parameters),
        flops_per_token=0,
        flops_per_token_causal=0,
        tokens_per_step=sequences * length,
        counted_tokens=None,
    )
    tensors = tuple(TensorFact(p.name, p.shape, precision.params) for p in parameters)
    return ExecutionPlan(1, "tiny", "runs/tiny", job, total_steps, mesh, program, tensors, (), estimates)


def default_program(
    model: Decoder,
    mesh: Mesh,
    precision: Precision,
    recompute: str | None,
    reshard: str | int,
    seed: int,
    axes: Mapping[str, Mapping[str, Any]],
    transforms: Mapping[str, Mapping[str, Any]],
) -> tuple[Operation, ...]:
    blocks = [f"layers.{i}" for i in range(model.layers)] + [f"mtp.{k}.block" for k in range(model.mtp)]
    replayed = {"mode": recompute, "blocks": blocks[1::2] if recompute == "every" else blocks}
    wrapping = dict(transforms) | ({"recompute": replayed} if recompute else {})
    cutting: list[Operation] = [
        OPERATIONS[axis](placed_by="mesh", **axes.get(axis, {}))
        for axis in ("pp", "tp", "cp", "ep")
        if getattr(mesh, axis) > 1
    ]
    return (
        Build(placed_by="always"),
        *cutting,
        *(OPERATIONS[name](placed_by="plan", **wrapping[name]) for name in OPERATIONS if name in wrapping),
        Fsdp(
            placed_by="always",
            reshard=reshard,
            params=precision.params,
            compute=precision.compute,
            reduce=precision.reduce,
        ),
        Materialise(placed_by="always"),
        Initialise(placed_by="always", seed=seed),
    )
