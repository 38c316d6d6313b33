"""Can the named attention backend compute this model on these devices?"""

from __future__ import annotations

from collections.abc import Iterator

from forgeplan.compiler.facts import Fact, Facts
from forgeplan.compiler.invariants.registry import Finding, invariant, legal
from forgeplan.spec.model.decoder import ATTENTIONS

WINDOW = ("auto", "flex", "flash")
SOFTCAP = ("auto", "flex")
PACKED = ("auto", "flex", "flash", "efficient", "math")
OF_CP = {
    "ring": (("auto", "flash", "math"), "ring attention"),
    "all_gather": (("auto", "flex", "efficient", "math"), "a rank's queries against the gathered keys of all cp ranks"),
}
"""By how the parts of a sequence attend to one another: who computes it, and what it is. Gathered keys need a mask."""
HALF_ONLY = ("flash", "cudnn")
LARGEST_FLASH_HEAD = 256
SMALLEST_FLEX_HEAD = 16


@invariant("FP0506", "the attention backend computes what the model asks for, on the devices of the plan")
def backend_computes_the_model(facts: Facts) -> Iterator[Finding]:
    backend = facts["model.attention"]
    faults = [*_features(facts, backend.value), *_device(facts, backend.value)]
    if not faults:
        return
    yield backend_computes_the_model.at(
        f"attention = {backend.value} does not compute {' nor '.join(text for text, _ in faults)}",
        backend,
        *dict.fromkeys(fact for _, facts_ in faults for fact in facts_),
        legal=(legal(facts, "model.attention", ATTENTIONS),),
    )


def _features(facts: Facts, backend: str) -> Iterator[tuple[str, tuple[Fact, ...]]]:
    """What the model needs that the backend does not know."""
    window, softcap, pack = facts["model.window"], facts["model.softcap"], facts["batch.pack"]
    if window.value is not None and window.value < facts["batch.length"].value and backend not in WINDOW:
        yield f"a window of {window.text}", (window,)
    if softcap.value is not None and backend not in SOFTCAP:
        yield f"a soft cap of {softcap.text}", (softcap,)
    if pack.value and backend not in PACKED:
        yield "packed documents", (pack,)
    cp = facts["mesh.cp"]
    if cp.value > 1:
        parts = facts["apply.cp.attention"]
        able, what = OF_CP[parts.value]
        if backend not in able:
            yield what, (parts, cp)


def _device(facts: Facts, backend: str) -> Iterator[tuple[str, tuple[Fact, ...]]]:
    """What the backend needs of the devices and number formats. On a CPU one kernel stands in for all but flex."""
    arch, compute, head = facts["cluster.arch"], facts["precision.compute"], facts["model.head_dim"]
    if arch.value == "cpu":
        if backend == "flex":
            yield "a backward pass on a CPU", (arch,)
        return
    if backend in HALF_ONLY and compute.value != "bf16":
        yield f"in {compute.value}", (compute,)
    if backend in (*HALF_ONLY, "efficient") and head.value % 8:
        yield f"heads of width {head.value}, no multiple of 8", (head,)
    if backend == "flash" and head.value > LARGEST_FLASH_HEAD:
        yield f"heads of width {head.value}, above {LARGEST_FLASH_HEAD}", (head,)
    if backend == "cudnn" and arch.value.startswith("gfx"):
        yield f"on {arch.value}", (arch,)
    if uses_flex(facts) and head.value < SMALLEST_FLEX_HEAD:
        yield f"heads of width {head.value}, below the {SMALLEST_FLEX_HEAD} of FlexAttention", (head,)


def uses_flex(facts: Facts) -> bool:
    """Whether attention is FlexAttention, which takes its mask in blocks."""
    backend, arch = facts["model.attention"].value, facts["cluster.arch"].value
    if facts["mesh.cp"].value > 1 and facts["apply.cp.attention"].value == "ring":
        return False
    return backend == "flex" or (backend == "auto" and arch != "cpu" and any(what_asks_for_flex(facts)))


def what_asks_for_flex(facts: Facts) -> Iterator[Fact]:
    """The values that make attention FlexAttention where it is used: its name, or what only it computes.

    The mask of some queries against the keys of all cp ranks is not plainly causal either.
    """
    backend, window, softcap, pack, cp = (
        facts[path] for path in ("model.attention", "model.window", "model.softcap", "batch.pack", "mesh.cp")
    )
    if backend.value == "flex":
        yield backend
    if window.value is not None and window.value < facts["batch.length"].value:
        yield window
    if softcap.value is not None:
        yield softcap
    if pack.value:
        yield pack
    if cp.value > 1 and facts["apply.cp.attention"].value == "all_gather":
        yield cp
