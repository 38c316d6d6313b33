"""Which blocks are computed again in backward?"""

from __future__ import annotations

from typing import Any

from forgeplan.compiler.passes.manager import Results, analysis
from forgeplan.compiler.patterns import meant


def blocks_of(model: Any) -> tuple[str, ...]:
    """Names of the blocks of a model, in the order of forward."""
    return (*(f"layers.{i}" for i in range(model.layers)), *(f"mtp.{k}.block" for k in range(model.mtp)))


def named_blocks(model: Any, only: tuple[str, ...] | None) -> tuple[str, ...]:
    """The blocks that the patterns mean; all of them without patterns."""
    return blocks_of(model) if only is None else meant(only, blocks_of(model))


@analysis("replayed")
def replayed(results: Results) -> tuple[str, ...]:
    """Names of the blocks that `recompute` is for, in the order of forward; none without it.

    With `mode = every` these are the k-th, 2k-th … of the blocks that `only` means.
    """
    facts = results.facts
    if facts.get("apply.recompute.mode") is None:
        return ()
    options = facts.transform("recompute")
    if options.mode == "none":
        return ()
    named = named_blocks(facts.block("model"), options.only)
    return named[options.every - 1 :: options.every] if options.mode == "every" else named
