"""Is there a block for `recompute` to compute again?"""

from __future__ import annotations

from collections.abc import Iterator

from forgeplan.compiler.facts import Facts
from forgeplan.compiler.invariants.registry import Finding, invariant, legal
from forgeplan.compiler.passes.replayed import blocks_of, named_blocks
from forgeplan.compiler.patterns import general, meant, module_names
from forgeplan.compiler.wording import listing, plural

MODES_WITHOUT_COMPILE = ("selective", "full")
DIVIDING = ("inductor", "aot_eager")
"""Backends that divide a graph into forward and backward, and decide then what is kept."""


@invariant("FP0460", "a memory budget for recomputation has `compile` to keep it")
def budget_is_kept_by_compile(facts: Facts) -> Iterator[Finding]:
    mode = facts.get("apply.recompute.mode")
    if mode is None or mode.value != "budget":
        return
    backend = facts.get("apply.compile.backend")
    if backend is not None:
        if backend.value not in DIVIDING:
            yield budget_is_kept_by_compile.at(
                f"recompute.mode = budget, and compile.backend = {backend.value} keeps all activations",
                mode,
                backend,
                legal=(legal(facts, backend.path, DIVIDING), legal(facts, mode.path, MODES_WITHOUT_COMPILE)),
            )
        return
    yield budget_is_kept_by_compile.at(
        "recompute.mode = budget without `compile`: which activations are kept is decided when a block is compiled",
        mode,
        legal=(legal(facts, mode.path, MODES_WITHOUT_COMPILE),),
        help=("or add `compile` to apply, between `recompute` and `fsdp`",),
    )


@invariant("FP0461", "`recompute` is for at least one block, and so is each of its patterns")
def some_block_is_replayed(facts: Facts) -> Iterator[Finding]:
    mode = facts.get("apply.recompute.mode")
    if mode is None or mode.value == "none":
        return
    only, every, model = facts["apply.recompute.only"], facts["apply.recompute.every"], facts.block("model")
    blocks, named = blocks_of(model), named_blocks(model, only.value)
    for pattern in only.value or ():
        if not meant([pattern], blocks) and meant([pattern], module_names(model)):
            yield some_block_is_replayed.at(
                f'"{pattern}" in apply.recompute.only is the name of no block, and whole blocks are computed again',
                only,
                help=(f"blocks of this model: {listing(dict.fromkeys(map(general, blocks)))}",),
            )
    if only.value == ():
        yield some_block_is_replayed.at(
            "apply.recompute.only = [] names no block",
            only,
            legal=(legal(facts, only.path, [None]),),
            help=("or drop `recompute`",),
        )
    if mode.value == "every" and 0 < len(named) < every.value:
        yield some_block_is_replayed.at(
            f"recompute is for one block in {every.value:,}, and of {plural(len(named), 'block')} that is none",
            every,
            mode,
            *((only,) if only.value is not None else (facts["model.layers"],)),
            legal=(legal(facts, every.path, [len(named)], also=" or less"),),
        )
