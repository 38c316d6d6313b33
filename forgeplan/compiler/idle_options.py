"""Which options of transforms does nothing read, and why?"""

from __future__ import annotations

from collections.abc import Iterator

from forgeplan.compiler.facts import Fact, Facts

Idle = tuple[Fact, tuple[Fact, ...], str]
"""An option, the values that make it idle, and the reason."""


def idle_options(facts: Facts) -> Iterator[Idle]:
    """Options of `pp`, `fp8` and `recompute` that other values make idle; written or not."""
    yield from _of_pp(facts)
    yield from _of_fp8(facts)
    yield from _of_recompute(facts)


def _of_pp(facts: Facts) -> Iterator[Idle]:
    cuts = facts.get("apply.pp.cuts")
    if cuts is None or cuts.value is None or facts["mesh.pp"].value == 1:
        return
    for name in ("embedding", "head"):
        yield facts[f"apply.pp.weights.{name}"], (cuts,), "layers are not dealt by weight where cuts are written"


def _of_fp8(facts: Facts) -> Iterator[Idle]:
    small, gather, shard = facts.get("apply.fp8.small"), facts.get("apply.fp8.all_gather"), facts["mesh.dp_shard"]
    if small is None or gather is None:
        return
    include = facts["apply.fp8.include"]
    if include.value != "all":
        yield small, (include,), "layers that `include` names are converted, whatever their size"
    if gather.value and facts.results("mesh").fsdp_degree == 1:
        yield gather, (shard, facts["mesh.cp"]), "parameters are not sharded, so that none are gathered"


def _of_recompute(facts: Facts) -> Iterator[Idle]:
    mode = facts.get("apply.recompute.mode")
    if mode is None:
        return
    for name in ("every", "budget"):
        if mode.value != name:
            yield facts[f"apply.recompute.{name}"], (mode,), f"only `mode = {name}` reads it"
    budget = facts["apply.recompute.budget"]
    if mode.value == "budget" and budget.value == 1:
        yield budget, (mode,), "all activations may be kept, as with `compile` alone"
    if mode.value == "none":
        yield facts["apply.recompute.only"], (mode,), "nothing is computed again"
