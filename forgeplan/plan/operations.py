"""Which steps turn a description of a model into sharded, initialised modules, and in which order may they stand?

An operation is data. Its order rules stand on it, are checked by the compiler and checked again by the executor.
"""

from __future__ import annotations

from typing import ClassVar

from attrs import field, frozen


@frozen
class Operation:
    """`name` is its word in the plan language; `before` says which must follow, and what silently breaks otherwise."""

    name: ClassVar[str]
    why: ClassVar[str]
    """One line for a person: what this step does, and why it stands where it stands."""
    before: ClassVar[dict[str, str]] = {}
    always: ClassVar[bool] = True
    """Whether every program has it."""
    placed_by: str
    """Who put it there: "plan" (named in `apply`), "mesh" (an axis above 1 asks for it) or "always"."""


@frozen
class Build(Operation):
    name = "build"
    why = "every module on the meta device: names and shapes, no memory"
    before: ClassVar[dict[str, str]] = {
        "pp": "there are no layers to deal to stages yet",
        "tp": "there are no weights to cut yet",
        "cp": "there is no attention that could exchange keys yet",
        "ep": "there are no experts to deal to ranks yet",
        "fp8": "there are no linear layers to convert yet",
        "recompute": "there are no blocks to replay yet",
        "compile": "there are no blocks to compile yet",
        "fsdp": "there are no parameters to shard yet",
        "materialise": "there is nothing to allocate yet",
        "initialise": "there is nothing to fill yet",
    }


def _stages(written: object) -> tuple[tuple[int, int], ...]:
    return tuple((int(first), int(end)) for first, end in written)  # type: ignore[attr-defined]


def _names(written: object) -> tuple[str, ...]:
    return tuple(map(str, written))  # type: ignore[call-overload]


@frozen
class Pp(Operation):
    """`stages` are the layers [first, end) of every stage of the pipeline, in the order of forward; the embedding is in
    the first and the norm and head in the last. Which rank holds which follows from the schedule."""

    name = "pp"
    always = False
    why = "first, so that everything after it works on the layers of this rank only"
    before: ClassVar[dict[str, str]] = dict.fromkeys(
        ("tp", "cp", "ep", "fp8", "recompute", "compile", "fsdp", "materialise", "initialise"),
        "stages take over layers that are sharded or wrapped already, and every rank works on the whole model first",
    )
    schedule: str = "one_f_one_b"
    stages_per_rank: int = 1
    stages: tuple[tuple[int, int], ...] = field(default=(), converter=_stages)


@frozen
class Tp(Operation):
    """sequence: positions are divided too, between the products. kv: shard | replicate."""

    name = "tp"
    always = False
    why = "before whatever wraps or replaces the linear layers whose weights it cuts"
    before: ClassVar[dict[str, str]] = {
        "ep": "experts are replaced already: routers and shared experts stay whole on every tp rank",
        "fp8": "converted layers no longer match: they stay whole, and were judged by their undivided width",
        "recompute": "the replayed forward is the one of before: it does not exchange what it computed",
        "compile": "the traced graph is the undivided block",
        "fsdp": "the data axis has taken dim 0 first: shards are cut again, and checkpoints hold wrong shapes",
        "materialise": "memory for undivided weights is allocated on every rank",
        "initialise": "undivided weights are filled on every rank, and then cut",
    }
    sequence: bool = True
    kv: str = "shard"


@frozen
class Cp(Operation):
    """attention: all_gather | ring. balance: head_tail | none."""

    name = "cp"
    always = False
    why = "before whatever replays, traces or surrounds the attention that it teaches to exchange keys"
    before: ClassVar[dict[str, str]] = {
        "recompute": "the replayed forward attends to the local part only: gradients of another function",
        "compile": "the exchange stays outside the graph: each rank attends to its own part",
        "fsdp": "the exchange lies outside the unit: before its gather in forward, after its release in backward",
        "materialise": "what exchanges keys is set up on modules that already own memory",
        "initialise": "what exchanges keys is set up on modules that are already filled",
    }
    attention: str = "all_gather"
    balance: str = "head_tail"


@frozen
class Ep(Operation):
    """hierarchical: tokens travel inside a node first, then between nodes."""

    name = "ep"
    always = False
    why = "after tp, which divides shared experts; before whatever wraps the experts that it deals to ranks"
    before: ClassVar[dict[str, str]] = {
        "fp8": "the filter judges, reports and may convert stacks of experts that are replaced afterwards",
        "recompute": "dispatch lies outside the replayed part: in backward a rank waits for an exchange nobody starts",
        "compile": "the token counts of the trace are baked in, for all experts",
        "fsdp": "gradients of different experts are summed over the dense data ranks",
        "materialise": "memory for all experts is allocated on every rank",
        "initialise": "all experts are filled on every rank, and then dealt",
    }
    hierarchical: bool = False


@frozen
class Fp8(Operation):
    """recipe: tensorwise | rowwise. `layers` are the linear layers to convert, by name, as decided at compile time."""

    name = "fp8"
    always = False
    why = "after tp, as it judges divided widths; before recompute, compile and fsdp, which must see float8 products"
    before: ClassVar[dict[str, str]] = {
        "recompute": "patterns meet replaced forwards, and the replay multiplies in another format",
        "compile": "the compiled graph keeps the wide products",
        "fsdp": "parameters are gathered in the wide format; the float8 all-gather never happens",
        "materialise": "conversion replaces weights that already own memory",
        "initialise": "conversion replaces weights that are already filled",
    }
    recipe: str = "tensorwise"
    all_gather: bool = False
    emulate: bool = False
    layers: tuple[str, ...] = field(default=(), converter=_names)


@frozen
class Recompute(Operation):
    """mode: full | selective | every | budget; `blocks` are the blocks it is for, by name, of `every` those chosen.
    selective keeps the results of matrix products, attention and exchanges. budget: share to keep, in thousandths."""

    name = "recompute"
    always = False
    why = "inside the fsdp unit, so that a block is gathered once for its replay and its backward"
    before: ClassVar[dict[str, str]] = {
        "compile": "the graph is traced without recomputation: no memory is saved",
        "fsdp": "the unit lies inside the replayed part: every block is gathered twice in backward",
        "materialise": "wrapping changes modules that already own memory",
        "initialise": "wrapping changes modules that are already filled",
    }
    mode: str = "full"
    budget: int = 500
    blocks: tuple[str, ...] = field(default=(), converter=_names)


@frozen
class Compile(Operation):
    """backend: inductor | aot_eager | eager."""

    name = "compile"
    always = False
    why = "block by block and inside the fsdp units, whose gathers stay out of the graphs"
    before: ClassVar[dict[str, str]] = {
        "fsdp": "the unit's hooks are traced: a graph break at each gather, and no prefetch",
        "materialise": "a graph is bound to modules that already own memory",
        "initialise": "a graph is bound to modules that are already filled",
    }
    backend: str = "inductor"
    fullgraph: bool = False
    loss: bool = True


@frozen
class Fsdp(Operation):
    """reshard: default | always | never | a number of ranks. Degrees come from the mesh, dtypes from `precision`.
    offload: shards and optimizer state live in host memory."""

    name = "fsdp"
    why = "last of the transforms, so that its gather and reduce surround everything inside a unit; carries the dtypes"
    before: ClassVar[dict[str, str]] = {
        "materialise": "memory for the whole model is allocated on every rank",
        "initialise": "whole tensors are filled on every rank, and then cut",
    }
    reshard: str | int = "default"
    params: str = "fp32"
    compute: str = "fp32"
    reduce: str = "fp32"
    offload: bool = False


@frozen
class Materialise(Operation):
    name = "materialise"
    why = "memory for this rank's shards only"
    before: ClassVar[dict[str, str]] = {"initialise": "values are written into tensors without memory"}


@frozen
class Initialise(Operation):
    """Every parameter and buffer is a function of (seed, full name, global shape)."""

    name = "initialise"
    why = "each value from (seed, name, shape), never from rank or layout"
    seed: int = 0


OPERATIONS: dict[str, type[Operation]] = {
    cls.name: cls for cls in (Build, Pp, Tp, Cp, Ep, Fp8, Recompute, Compile, Fsdp, Materialise, Initialise)
}
"""In the order in which they stand where the rules leave a choice."""


def first_inversion(names: list[str]) -> tuple[str, str, str] | None:
    """The first pair that stands the wrong way round, as (earlier, later, what silently breaks), or None."""
    for i, earlier in enumerate(names):
        for later in names[i + 1 :]:
            breaks = OPERATIONS[later].before.get(earlier)
            if breaks is not None:
                return earlier, later, breaks
    return None
