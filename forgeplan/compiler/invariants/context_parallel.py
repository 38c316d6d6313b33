"""Can a sequence be cut into the parts of the context-parallel ranks, and its attention be computed in parts?"""

from __future__ import annotations

from collections.abc import Iterator
from math import gcd, lcm

from forgeplan.compiler.facts import Fact, Facts
from forgeplan.compiler.invariants.attention import uses_flex, what_asks_for_flex
from forgeplan.compiler.invariants.registry import Finding, divisors, invariant, legal, neighbours
from forgeplan.compiler.wording import listing, plural

FLEX_BLOCK = 128
"""FlexAttention masks in blocks of so many positions."""


@invariant("FP0419", "a sequence is a whole number of the parts that `mesh.cp` cuts it into")
def sequence_is_cut_evenly(facts: Facts) -> Iterator[Finding]:
    length, cp = facts["batch.length"], facts["mesh.cp"]
    parts = parts_of_a_sequence(facts)
    if length.value % parts == 0:
        return
    balance = facts["apply.cp.balance"]
    yield sequence_is_cut_evenly.at(
        f"a sequence of {plural(length.value, 'token')} is no multiple of {parts:,}: {_why(facts, parts)}, and "
        f"{length.value:,} % {parts:,} = {length.value % parts:,}",
        length,
        cp,
        balance,
        *(fact for fact in what_asks_for_flex(facts) if fact.path != "mesh.cp" and uses_flex(facts)),
        legal=(
            legal(facts, "batch.length", neighbours(length.value, lcm(parts, _ranks_of_a_sequence(facts)))),
            legal(facts, "apply.cp.balance", ["none"] if balance.value == "head_tail" else []),
            legal(facts, "mesh.cp", divisors(gcd(length.value, facts["cluster.devices"].value))),
        ),
    )


def parts_of_a_sequence(facts: Facts) -> int:
    """What the length of a sequence is a multiple of where cp cuts it evenly."""
    cp = int(facts["mesh.cp"].value)
    if cp == 1:
        return 1
    if uses_flex(facts):
        return FLEX_BLOCK * cp
    return 2 * cp if facts["apply.cp.balance"].value == "head_tail" else cp


def _why(facts: Facts, parts: int) -> str:
    cp = facts["mesh.cp"].value
    if parts == cp * FLEX_BLOCK:
        return f"each of {cp:,} cp ranks has whole blocks of {FLEX_BLOCK} positions, as FlexAttention masks them"
    if parts == cp:
        return f"each of {cp:,} cp ranks has a part of it"
    return f"each of {cp:,} cp ranks has an early and a late part of it (balance = head_tail)"


def _ranks_of_a_sequence(facts: Facts) -> int:
    """Ranks that the positions of a sequence are divided over: those of cp, and of tp where it divides them too."""
    tp = int(facts["mesh.tp"].value)
    return int(facts["mesh.cp"].value) * (tp if tp > 1 and facts["apply.tp.sequence"].value else 1)


@invariant("FP0420", "ring attention has a full causal mask: no packed documents, no window, no soft cap")
def ring_has_a_full_mask(facts: Facts) -> Iterator[Finding]:
    cp = facts["mesh.cp"]
    if cp.value == 1 or facts["apply.cp.attention"].value != "ring":
        return
    asking = [fact for fact in what_asks_for_flex(facts) if fact.path != "model.attention"]
    if not asking:
        return
    yield ring_has_a_full_mask.at(
        f"ring attention computes a full causal mask only, and the plan has {listing(map(_called, asking), ' and ')}",
        facts["apply.cp.attention"],
        *asking,
        cp,
        legal=(legal(facts, "apply.cp.attention", ["all_gather"]),),
    )


def _called(fact: Fact) -> str:
    texts = {"batch.pack": "packed documents", "model.window": f"a window of {fact.text}"}
    return texts.get(fact.path, f"a soft cap of {fact.text}")
