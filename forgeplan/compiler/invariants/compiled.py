"""Can blocks be compiled as whole graphs, with this backend?"""

from __future__ import annotations

from collections.abc import Iterator

from forgeplan.compiler.facts import Facts
from forgeplan.compiler.invariants.attention import uses_flex, what_asks_for_flex
from forgeplan.compiler.invariants.registry import Finding, invariant, legal
from forgeplan.compiler.passes.replayed import blocks_of
from forgeplan.compiler.wording import plural

FOR_FLEX = ("inductor", "aot_eager")
"""Backends that compile FlexAttention with its backward."""


@invariant("FP0462", "what `compile` is asked for can be compiled")
def blocks_can_be_compiled(facts: Facts) -> Iterator[Finding]:
    fullgraph, backend = facts.get("apply.compile.fullgraph"), facts.get("apply.compile.backend")
    if fullgraph is None or backend is None:
        return
    model = facts.block("model")
    with_experts = sum(model.is_moe(layer) for layer in range(len(blocks_of(model))))
    if fullgraph.value and with_experts:
        ep = facts["mesh.ep"]
        yield blocks_can_be_compiled.at(
            f"compile.fullgraph = true, and {with_experts:,} of {plural(len(blocks_of(model)), 'block')} must break "
            "their graph: how many tokens an expert gets is known only when it runs",
            fullgraph,
            facts["model.moe.experts"],
            *((ep,) if ep.value > 1 else ()),
            legal=(legal(facts, fullgraph.path, [False]),),
        )
    if uses_flex(facts) and backend.value not in FOR_FLEX:
        yield blocks_can_be_compiled.at(
            f"compile.backend = {backend.value} does not compile FlexAttention, which attention is here",
            backend,
            *what_asks_for_flex(facts),
            legal=(legal(facts, backend.path, FOR_FLEX),),
        )
