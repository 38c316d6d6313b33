"""Can the experts be dealt to the ranks?"""

from __future__ import annotations

from collections.abc import Iterator
from math import gcd

from forgeplan.compiler.facts import Facts
from forgeplan.compiler.invariants.registry import Finding, divisors, invariant, legal, neighbours, rewritten
from forgeplan.compiler.wording import plural
from forgeplan.diagnostics.diagnostic import Safety


@invariant("FP0403", "the groups of experts tile the ranks that they fold into: `dp_shard · cp · tp`")
def experts_fold_into_the_ranks(facts: Facts) -> Iterator[Finding]:
    ep, experts = facts["mesh.ep"], facts.get("model.moe.experts")
    shard, cp, tp = (facts[f"mesh.{axis}"] for axis in ("dp_shard", "cp", "tp"))
    ranks = shard.value * cp.value * tp.value
    if experts is None or ranks % ep.value == 0:
        return
    yield experts_fold_into_the_ranks.at(
        f"groups of {plural(ep.value, 'rank')} do not tile the {ranks:,} that experts fold into: "
        f"dp_shard · cp · tp = {shard.value:,} · {cp.value:,} · {tp.value:,} = {ranks:,}, "
        f"and {ranks:,} % {ep.value:,} = {ranks % ep.value:,}",
        ep,
        shard,
        cp,
        tp,
        experts,
        legal=(legal(facts, "mesh.ep", divisors(gcd(ranks, experts.value))),),
    )


@invariant("FP0404", "`mesh.ep` above 1 has experts to deal out")
def there_are_experts(facts: Facts) -> Iterator[Finding]:
    ep = facts["mesh.ep"]
    if ep.value == 1 or facts.block("model").moe is not None:
        return
    yield there_are_experts.at(
        f"no layer of this model has experts, and {ep.equation} deals them to ranks",
        ep,
        facts.get("model.moe"),
        legal=(legal(facts, "mesh.ep", [1]),),
        help=("or give the model experts: model.moe = { experts = 8, top_k = 2 }",),
        fixes=rewritten(ep, "1", "set mesh.ep to 1", Safety.SAFE),
    )


@invariant("FP0405", "`mesh.ep` divides the experts of every layer")
def experts_are_dealt_evenly(facts: Facts) -> Iterator[Finding]:
    ep, experts = facts["mesh.ep"], facts.get("model.moe.experts")
    if experts is None or experts.value % ep.value == 0:
        return
    model, ranks = facts.block("model"), facts.results("mesh").expert_fold
    layer = next((i for i in range(model.layers) if model.is_moe(i)), 0)
    yield experts_are_dealt_evenly.at(
        f"the {plural(experts.value, 'expert')} of layers.{layer} cannot be dealt evenly to {ep.value:,} ranks: "
        f"{experts.value:,} % {ep.value:,} = {experts.value % ep.value:,}",
        ep,
        experts,
        legal=(
            legal(facts, "mesh.ep", divisors(gcd(ranks, experts.value))),
            legal(facts, "model.moe.experts", neighbours(experts.value, ep.value)),
        ),
    )


@invariant("FP0406", "with `mesh.ep` and `mesh.tp` above 1, tp divides the sequence too")
def no_token_is_sent_twice(facts: Facts) -> Iterator[Finding]:
    ep, tp = facts["mesh.ep"], facts["mesh.tp"]
    if ep.value == 1 or tp.value == 1 or facts.block("model").moe is None or facts["apply.tp.sequence"].value:
        return
    yield no_token_is_sent_twice.at(
        f"each of {tp.value:,} tp ranks would send the same tokens to the experts, whose gradients would be "
        f"{tp.value:,} times too large",
        facts["apply.tp.sequence"],
        tp,
        ep,
        legal=(
            legal(facts, "apply.tp.sequence", [True]),
            legal(facts, "mesh.ep", [1]),
            legal(facts, "mesh.tp", [1]),
        ),
        help=("sequence parallelism gives each tp rank tokens of its own: tp { sequence = true }",),
    )


@invariant("FP0409", "experts that exchange tokens node by node lie evenly on the nodes")
def groups_of_experts_fill_nodes(facts: Facts) -> Iterator[Finding]:
    ep, by_node, devices = facts["mesh.ep"], facts["apply.ep.hierarchical"], facts["cluster.devices_per_node"]
    if ep.value == 1 or not by_node.value or ep.value % devices.value == 0 or devices.value % ep.value == 0:
        return
    ranks = facts.results("mesh").expert_fold
    yield groups_of_experts_fill_nodes.at(
        f"groups of {plural(ep.value, 'rank')} lie unevenly on nodes of {plural(devices.value, 'device')}: "
        "tokens cannot travel inside a node first and between nodes then",
        by_node,
        ep,
        devices,
        legal=(legal(facts, "apply.ep.hierarchical", [False]), legal(facts, "mesh.ep", divisors(ranks))),
    )
