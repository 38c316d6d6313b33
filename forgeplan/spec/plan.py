"""What can a plan say? The blocks that are not components; components are in the folders beside this file."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from attrs import frozen

from forgeplan.spec import types as t
from forgeplan.spec.quantity import BYTES, FLOP_PER_SECOND, NUMBER, SEQUENCES, SHARE, TOKENS, Quantity
from forgeplan.spec.setting import DERIVED, Change, setting

ARCHITECTURES = ("cpu", "sm80", "sm89", "sm90", "sm100", "gfx942")
_NO_FP16 = "`bf16`: fp16 needs a loss scaler, which this executor does not have, as gradients below 6e-8 vanish"
DTYPES = t.OneOf(
    ("fp64", "fp32", "bf16"),
    aliases=(("bfloat16", "bf16"), ("float32", "fp32"), ("float", "fp32"), ("float64", "fp64"), ("double", "fp64")),
    refused=tuple((word, _NO_FP16) for word in ("fp16", "float16", "half")),
)


@frozen
class Cluster:
    """The machines a plan is for. Facts that are not stated are not checked."""

    nodes: int = setting(t.COUNT, "machines", default="1", within="[1, 1048576]", change=Change.RESHARD)
    devices_per_node: int = setting(
        t.COUNT,
        "devices (ranks) of one machine",
        within="[1, 1024]",
        change=Change.RESHARD,
        example="8",
        aliases=("gpus", "gpus_per_node"),
    )
    arch: str = setting(t.OneOf(ARCHITECTURES), "device architecture", change=Change.RESUMABLE, example="sm90")
    hbm: int | None = setting(
        t.optional(t.Measure(BYTES, whole=True)),
        "memory of one device",
        default="none",
        within="(0, )",
        change=Change.COSMETIC,
    )
    bf16: Fraction | None = setting(
        t.optional(t.Measure(FLOP_PER_SECOND)),
        "peak bf16 rate of one device, dense",
        default="none",
        within="(0, )",
        change=Change.COSMETIC,
    )


@frozen
class Precision:
    """Number formats. `fp64` is for verification on the CPU."""

    params: str = setting(DTYPES, "stored (master) parameters", default="fp32")
    compute: str = setting(
        DTYPES, "matrix products and activations", default="if cluster.arch == cpu then fp32 else bf16"
    )
    reduce: str = setting(DTYPES, "gradient accumulation and reduction over ranks", default="fp32")
    moments: str = setting(DTYPES, "moments of the optimizer", default="fp32")


@frozen
class Batch:
    """How many tokens make a step. Tokens are positions, whether counted in the loss or not."""

    global_: Quantity = setting(
        t.Measures((TOKENS, SEQUENCES)),
        "batch of one step over all ranks",
        default=DERIVED,
        within="[1, 1125899906842624]",
        required_group="size",
        change=Change.RESUMABLE,
        example="2Mi tokens",
        aliases=("batch_size", "global_batch_size"),
    )
    accumulation: int = setting(
        t.COUNT,
        "microbatches of one step on each data rank",
        default=DERIVED,
        within="[1, 1048576]",
        required_group="size",
        change=Change.RESUMABLE,
        example="4",
        aliases=("gradient_accumulation_steps",),
    )
    micro: int = setting(
        t.SEQUENCE_COUNT,
        "sequences of one microbatch",
        within="[1, 1048576]",
        change=Change.RESUMABLE,
        example="4 sequences",
        aliases=("micro_batch_size",),
    )
    length: int = setting(
        t.TOKEN_COUNT,
        "length of one sequence",
        within="[1, )",
        example="4Ki tokens",
        aliases=("seq_len", "max_seq_len", "sequence_length"),
    )
    pack: bool = setting(t.Bool(), "documents of a sequence do not see one another, positions restart", default="false")


@frozen
class Mesh:
    """Degrees of the parallel axes, outer to inner. All but ep multiply to the number of devices; ep borrows ranks from
    dp_shard, cp and tp."""

    pp: int = setting(
        t.COUNT,
        "pipeline stages, groups of layers",
        default="1",
        within="[1, )",
        change=Change.RESHARD,
        aliases=("pipeline_parallel", "pipeline_parallel_degree", "pp_size"),
    )
    dp_replicate: int = setting(
        t.COUNT,
        "replicas of the sharded model",
        default="1",
        within="[1, )",
        change=Change.RESHARD,
        aliases=("data_parallel_replicate_degree", "replicas", "ddp"),
    )
    dp_shard: int = setting(
        t.or_auto(t.COUNT),
        "ranks over which parameters are sharded",
        default="auto",
        within="[1, )",
        change=Change.RESHARD,
        aliases=("fsdp", "dp", "data_parallel", "data_parallel_shard_degree", "dp_size"),
    )
    cp: int = setting(
        t.COUNT,
        "parts of a sequence that attend to one another",
        default="1",
        within="[1, )",
        change=Change.RESHARD,
        aliases=("context_parallel", "context_parallel_degree", "cp_size"),
    )
    tp: int = setting(
        t.COUNT,
        "parts of every weight matrix of a layer",
        default="1",
        within="[1, )",
        change=Change.RESHARD,
        aliases=("tensor_parallel", "tensor_parallel_degree", "tp_size"),
    )
    ep: int = setting(
        t.COUNT,
        "groups of experts",
        default="1",
        within="[1, )",
        change=Change.RESHARD,
        aliases=("expert_parallel", "expert_parallel_degree", "ep_size"),
    )


@frozen
class Budget:
    """When a run ends. One of tokens and steps is the horizon; `wall` stops first, over all resumes."""

    tokens: int | None = setting(
        t.optional(t.TOKEN_COUNT),
        "positions to train on; the last step is whole",
        default="none",
        within="[1, )",
        change=Change.RESUMABLE,
    )
    steps: int | None = setting(
        t.optional(t.STEP_COUNT), "optimizer updates", default=DERIVED, within="[1, )", change=Change.RESUMABLE
    )
    wall: Fraction | None = setting(
        t.optional(t.DURATION),
        "time of training, over all resumes",
        default="none",
        within="(0, )",
        change=Change.COSMETIC,
    )


@frozen
class Checkpoint:
    """When and where training state is saved. The end of a run and a stop signal always save."""

    every: Quantity | None = setting(
        t.optional(t.POINT),
        "distance between saves; with `none` only the end of a run and a stop signal save",
        default="none",
        within="(0, )",
        change=Change.COSMETIC,
    )
    keep: int | str = setting(
        t.AnyOf((t.COUNT, t.OneOf(("all",)))),
        "committed checkpoints to keep",
        default="3",
        within="[1, )",
        change=Change.COSMETIC,
    )
    path: str = setting(
        t.PathText(output=True), "folder that holds `checkpoints/`", default="run.dir", change=Change.COSMETIC
    )
    resume: str | int = setting(
        t.AnyOf((t.OneOf(("auto", "none")), t.STEP_COUNT)),
        "newest good checkpoint, never, or a named step",
        default="auto",
        change=Change.COSMETIC,
    )


@frozen
class Guard:
    """What happens when training goes wrong."""

    clip: Fraction | None = setting(
        t.optional(t.REAL), "largest global gradient norm", default="1.0", within="(0, )", change=Change.RESUMABLE
    )
    nonfinite: Any = setting(
        t.Component("nonfinite"), "policy for a non-finite loss or gradient", default="skip {}", change=Change.COSMETIC
    )


@frozen
class Metrics:
    """What is reported, and where to. `metrics.jsonl` is always written."""

    every: int = setting(
        t.STEP_COUNT, "steps between reports", default="10 steps", within="[1, )", change=Change.COSMETIC
    )
    sinks: tuple[Any, ...] = setting(
        t.ListOf(t.Component("sink")), "further receivers", default="[tensorboard]", change=Change.COSMETIC
    )


@frozen
class Eval:
    """Loss on data that training does not see."""

    source: str = setting(t.NameIn("sources"), "name of a source", change=Change.COSMETIC, example="web")
    split: Fraction | None = setting(
        t.optional(t.PORTION),
        "share of the source that is held out from training, by stable hash",
        default="none",
        within="(0, 1)",
    )
    every: Quantity = setting(
        t.POINT,
        "distance between evaluations; the end always evaluates",
        within="(0, )",
        change=Change.COSMETIC,
        example="500 steps",
    )
    batches: int | str = setting(
        t.AnyOf((t.COUNT, t.OneOf(("all",)))),
        "microbatches over all data ranks",
        default="all",
        within="[1, )",
        change=Change.COSMETIC,
    )


@frozen
class Plan:
    """One training run."""

    seed: int = setting(t.COUNT, "seed of initial weights, data order and dropout", default="0", within="[0, )")
    cluster: Cluster = setting(t.Block(Cluster), "the machines", change=Change.RESHARD, example="cpu_host {}")
    model: Any = setting(t.Component("model"), "the model", example="decoder { … }")
    tokenizer: Any = setting(t.optional(t.Component("tokenizer")), "how text becomes ids", default="none")
    precision: Precision = setting(t.Block(Precision), "number formats", default="{}")
    sources: dict[str, Any] = setting(
        t.MapOf(t.Component("source")),
        "where data comes from, by a name of your choice",
        example='{ web = tokens { path = "…" } }',
    )
    mixture: dict[str, Quantity] | None = setting(
        t.optional(t.MapOf(t.Measures((SHARE, NUMBER)), keys="sources")),
        "share of each source in training; one source needs none",
        default="none",
    )
    batch: Batch = setting(
        t.Block(Batch), "the batch", example="{ global = 2Mi tokens, micro = 4 sequences, length = 4Ki tokens }"
    )
    optimizer: Any = setting(t.Component("optimizer"), "the optimizer", example="adamw { lr = 3e-4 }")
    schedule: Any = setting(
        t.optional(t.Component("schedule")),
        "learning rate over time; `none` is a constant rate without warm-up",
        default="cosine {}",
        change=Change.RESUMABLE,
    )
    loss: Any = setting(t.Component("loss"), "the loss", default="cross_entropy {}")
    mesh: Mesh = setting(t.Block(Mesh), "degrees of the parallel axes", default="{}", change=Change.RESHARD)
    apply: tuple[Any, ...] = setting(
        t.ListOf(t.Component("operation"), keyed=True),
        "transforms with their options, in order",
        default="[]",
        change=Change.RESHARD,
    )
    budget: Budget = setting(
        t.Block(Budget), "when the run ends", example="{ tokens = 20B tokens }", change=Change.RESUMABLE
    )
    checkpoint: Checkpoint = setting(
        t.Block(Checkpoint), "when and where state is saved", default="{}", change=Change.COSMETIC
    )
    guard: Guard = setting(
        t.Block(Guard), "what happens when training goes wrong", default="{}", change=Change.RESUMABLE
    )
    metrics: Metrics = setting(t.Block(Metrics), "what is reported", default="{}", change=Change.COSMETIC)
    eval: dict[str, Eval] = setting(t.NodesOf(Eval), "evaluations", default="{}", change=Change.COSMETIC)
