"""Which small plans lie in the space of the language? Drawn over every axis and option, mostly near what fits."""

from __future__ import annotations

from math import prod
from typing import Any

from attrs import frozen
from hypothesis import strategies as st

AXES = ("pp", "dp_replicate", "dp_shard", "cp", "tp")
SCHEDULES = ("cosine {}", "linear { warmup = 1 steps }", "wsd { decay = 1 steps }", "rex {}", "constant {}", "none")
PP_SCHEDULES = ("gpipe", "one_f_one_b", "looped_bfs", "interleaved", "zero_bubble", "zbv", "dualpipe_v")
RECOMPUTE = ("none", "full", "selective", "every", "budget")
ROUTERS = ("softmax_topk {}", "softmax_topk { renormalise = false }", "sigmoid_topk { rate = 1e-2 }")


@frozen
class Drawn:
    """A plan's text, and the features it asks for by name."""

    text: str
    features: frozenset[str]
    world: int


@st.composite
def plans(draw: st.DrawFn) -> Drawn:
    """Nine of ten meshes multiply to the devices; every option is drawn freely, so many plans break some rule."""
    world = draw(st.sampled_from((1, 2, 2, 4, 4)))
    mesh = draw(_meshes(world))
    model, kinds = draw(_models(mesh))
    batch = draw(_batches(mesh))
    transforms, modes = draw(_transforms(mesh, kinds))
    schedule = draw(st.sampled_from(SCHEDULES))
    z = draw(st.sampled_from(("0", "0", "1e-3")))
    lines = [
        f"cluster = {{ devices_per_node = {world}, arch = cpu }}",
        f"model = decoder {{ {model} }}",
        "sources = { counter = synthetic { states = 16, document = 7 tokens } }",
        f"mesh = {{ {', '.join(f'{axis} = {degree}' for axis, degree in mesh.items())} }}",
        f"batch = {{ {batch}, length = 16 tokens, pack = {_word(draw(st.booleans()))} }}",
        "optimizer = adamw { lr = 1e-2 }",
        f"schedule = {schedule}",
        f"loss = cross_entropy {{ z = {z} }}",
        f"apply = [{', '.join(transforms)}]",
        "budget = { steps = 3 steps }",
    ]
    if "router" in kinds:
        kinds.add("moe")
    axes = {axis for axis, degree in mesh.items() if degree > 1}
    features = {*axes, *kinds, *modes, f"schedule {schedule.split(' ')[0]}", "loss z" if z != "0" else "loss plain"}
    return Drawn("forge 1\nplan drawn {\n  " + "\n  ".join(lines) + "\n}\n", frozenset(features), world)


@st.composite
def _meshes(draw: st.DrawFn, world: int) -> dict[str, int]:
    """Factors of two dealt to the axes one by one; ep among those that it can borrow from."""
    if draw(st.integers(0, 9)) == 0:
        return {axis: draw(st.sampled_from((1, 2, 3))) for axis in (*AXES, "ep")}
    mesh = dict.fromkeys(AXES, 1)
    left = world
    while left > 1:
        mesh[draw(st.sampled_from(AXES))] *= 2
        left //= 2
    fold = mesh["dp_shard"] * mesh["cp"] * mesh["tp"]
    return mesh | {"ep": draw(st.sampled_from([ep for ep in (1, 2, 4) if fold % ep == 0]))}


@st.composite
def _models(draw: st.DrawFn, mesh: dict[str, int]) -> tuple[str, set[str]]:
    heads = draw(st.sampled_from((2, 4, 4)))
    fields: dict[str, Any] = {
        "layers": draw(st.sampled_from((1, 2, 4, 4))),
        "dim": draw(st.sampled_from((16, 32))),
        "heads": heads,
        "kv_heads": draw(st.sampled_from((1, 2, 4, heads))),
        "ffn": draw(st.sampled_from((24, 32, 33))),
        "vocab": draw(st.sampled_from((17, 32))),
        "context": draw(st.sampled_from(("16 tokens", "32 tokens", "8 tokens"))) if draw(_seldom()) else "16 tokens",
        "norm": draw(st.sampled_from(("rms", "layer"))),
        "mlp": draw(st.sampled_from(("swiglu", "gelu"))),
        **{name: _word(draw(st.booleans())) for name in ("qk_norm", "bias")},
        "tie": _word(mesh["pp"] == 1 and draw(st.booleans())),
        "dropout": draw(st.sampled_from(("0", "0.1"))),
    }
    kinds = {"dense"}
    with_experts = mesh["ep"] > 1 or (mesh["pp"] == 1 and draw(st.integers(0, 2)) == 0)
    if with_experts:
        kinds = {"moe"}
        router = draw(st.sampled_from(ROUTERS))
        capacity, shared = draw(st.sampled_from(("none", "none", "1"))), draw(st.integers(0, 1))
        fields["moe"] = (
            f"{{ experts = {draw(st.sampled_from((4, 4, 6)))}, top_k = {draw(st.integers(1, 2))}, ffn = 16, "
            f"shared = {shared}, router = {router}, capacity = {capacity}, balance = 1e-2 }}"
        )
    if mesh["pp"] == mesh["cp"] == 1 and draw(st.integers(0, 5)) == 0:
        fields["mtp"] = 1
        kinds.add("mtp")
    return ", ".join(f"{name} = {value}" for name, value in fields.items()), kinds


@st.composite
def _batches(draw: st.DrawFn, mesh: dict[str, int]) -> str:
    micro = draw(st.sampled_from((1, 2)))
    accumulation = draw(st.sampled_from((4, 4, 8))) if mesh["pp"] > 1 else draw(st.sampled_from((1, 2)))
    if draw(_seldom()):
        return f"global = {draw(st.sampled_from((4, 6, 8)))} sequences, micro = {micro} sequences"
    return f"accumulation = {accumulation}, micro = {micro} sequences"


@st.composite
def _transforms(draw: st.DrawFn, mesh: dict[str, int], kinds: set[str]) -> tuple[list[str], set[str]]:
    """In the right order, as a rule."""
    found: list[str] = []
    modes: set[str] = set()
    # Every rank compiles: seldom on many.
    few = prod(mesh[axis] for axis in AXES) <= 2
    mode = draw(st.sampled_from((*RECOMPUTE[:-1], *RECOMPUTE) if few else (*RECOMPUTE[:-1] * 5, *RECOMPUTE)))
    compiled = mode == "budget" or draw(st.integers(0, 39)) == 0
    if mesh["pp"] > 1:
        schedule = draw(st.sampled_from(PP_SCHEDULES))
        found.append(f"pp {{ schedule = {schedule} }}")
    if mesh["tp"] > 1:
        whole, kv = mesh["ep"] == 1 and draw(st.booleans()), draw(st.sampled_from(("shard", "replicate")))
        found.append(f"tp {{ sequence = {_word(not whole)}, kv = {kv} }}")
    if mesh["cp"] > 1:
        attention, balance = draw(st.sampled_from(("all_gather", "ring"))), draw(st.sampled_from(("head_tail", "none")))
        found.append(f"cp {{ attention = {attention}, balance = {balance} }}")
    if draw(st.integers(0, 7)) == 0:
        recipe = draw(st.sampled_from(("tensorwise", "rowwise")))
        found.append(f"fp8 {{ recipe = {recipe}, small = convert, emulate = true }}")
        modes.add("fp8")
    found.append(f"recompute {{ mode = {mode} }}")
    modes.add(f"recompute {mode}")
    if compiled:
        found.append("compile { backend = aot_eager }")
        modes.add("compile")
    found.append(f"fsdp {{ reshard = {draw(st.sampled_from(('default', 'always', 'never')))} }}")
    return (list(draw(st.permutations(found))) if draw(_seldom()) else found), modes


def _seldom() -> st.SearchStrategy[bool]:
    return st.integers(0, 14).map(lambda n: n == 0)


def _word(value: bool) -> str:
    return str(value).lower()
