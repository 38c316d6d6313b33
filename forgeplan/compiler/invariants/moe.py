"""Do layers, experts and groups of experts fit one another?"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from attrs import frozen

from forgeplan.compiler.facts import Fact, Facts
from forgeplan.compiler.invariants.registry import Finding, divisors, invariant, legal, lint, neighbours
from forgeplan.compiler.wording import count, plural

STRIDE_BYTES = 16
"""Rows of the matrices of a grouped product begin at multiples of this."""
COMPUTE_BYTES = {"fp32": 4, "bf16": 2}


@invariant("FP0508", "at least one layer of a mixture of experts has experts")
def some_layer_has_experts(facts: Facts) -> Iterator[Finding]:
    first, every, layers = _of_moe(facts, "first_dense"), _of_moe(facts, "every"), facts["model.layers"]
    if first is None or every is None:
        return
    last = layers.value // every.value * every.value - 1
    if last >= first.value:
        return
    enough = (first.value // every.value + 1) * every.value
    places = (every, first) if first.value < layers.value else (first, every)
    yield some_layer_has_experts.at(
        f"none of {plural(layers.value, 'layer')} has experts: layer i, counted from 0, has them if "
        f"i ≥ {count(first.value)} and (i + 1) % {count(every.value)} = 0",
        *places,
        layers,
        legal=(
            legal(facts, first.path, [last] if last >= 0 else [], also=" or less"),
            legal(facts, every.path, [layers.value] if first.value < layers.value else []),
            legal(facts, layers.path, [enough] if _in_range(layers, enough) else [], also=" or more"),
        ),
    )


@invariant("FP0509", "a token is sent to at most as many experts as there are")
def enough_experts_for_a_token(facts: Facts) -> Iterator[Finding]:
    top_k, experts = _of_moe(facts, "top_k"), _of_moe(facts, "experts")
    if top_k is None or experts is None or top_k.value <= experts.value:
        return
    yield enough_experts_for_a_token.at(
        f"a token cannot be sent to {count(top_k.value)} of {plural(experts.value, 'expert')}",
        top_k,
        experts,
        legal=(
            legal(facts, top_k.path, [experts.value], also=" or less"),
            legal(facts, experts.path, [top_k.value]),
        ),
    )


@invariant("FP0510", "groups of experts are of equal size, at least 2, and those of a token hold enough experts")
def groups_fit_the_experts(facts: Facts) -> Iterator[Finding]:
    names = ("groups", "experts", "group_limit", "top_k")
    found = [fact for name in names if (fact := _of_moe(facts, name)) is not None]
    if len(found) == len(names):
        groups = _Groups(facts, *found)
        # A later relation is about the sizes that an earlier one says are none.
        relations = (_equal_groups, _pairs_to_rank_by, _limit_within_groups, _enough_in_the_limit)
        yield from islice((finding for relation in relations for finding in relation(groups)), 1)


@frozen
class _Groups:
    facts: Facts
    groups: Fact
    experts: Fact
    limit: Fact
    top_k: Fact

    @property
    def size(self) -> int:
        return int(self.experts.value // self.groups.value)

    def possible(self, at_least: int = 1) -> list[int]:
        """Numbers of groups that leave each two experts, or one group for all."""
        experts = self.experts.value
        return [d for d in divisors(experts) if d >= at_least and (d == 1 or experts // d >= 2)]


def _equal_groups(g: _Groups) -> Iterator[Finding]:
    groups, experts = g.groups.value, g.experts.value
    if experts % groups:
        yield groups_fit_the_experts.at(
            f"{plural(experts, 'expert')} cannot be divided into {count(groups)} groups of equal size: "
            f"{count(experts)} % {count(groups)} = {count(experts % groups)}",
            g.groups,
            g.experts,
            legal=(
                legal(g.facts, g.groups.path, g.possible()),
                legal(g.facts, g.experts.path, neighbours(experts, groups)),
            ),
        )


def _pairs_to_rank_by(g: _Groups) -> Iterator[Finding]:
    groups = g.groups.value
    if groups > 1 and g.size < 2:
        yield groups_fit_the_experts.at(
            f"groups are ranked by the sum of their two best scores, and {plural(g.experts.value, 'expert')} in "
            f"{count(groups)} groups are one a group",
            g.groups,
            g.experts,
            legal=(
                legal(g.facts, g.groups.path, g.possible()),
                legal(g.facts, g.experts.path, [2 * groups]),
            ),
        )


def _limit_within_groups(g: _Groups) -> Iterator[Finding]:
    groups, limit = g.groups.value, g.limit.value
    if limit > groups:
        yield groups_fit_the_experts.at(
            f"a token cannot choose from {count(limit)} of {plural(groups, 'group')} of experts",
            g.limit,
            g.groups,
            legal=(
                legal(g.facts, g.limit.path, [groups], also=" or less"),
                legal(g.facts, g.groups.path, g.possible(at_least=limit)),
            ),
        )


def _enough_in_the_limit(g: _Groups) -> Iterator[Finding]:
    groups, limit, top_k = g.groups.value, g.limit.value, g.top_k.value
    open_to_it, least = limit * g.size, -(-top_k // g.size)
    # More than there are at all is FP0509.
    if open_to_it < top_k <= g.experts.value:
        yield groups_fit_the_experts.at(
            f"a token is sent to {plural(top_k, 'expert')} and may choose from {plural(limit, 'group')} of "
            f"{count(g.size)}: {count(limit)} · {count(g.size)} = {count(open_to_it)}",
            g.limit,
            g.top_k,
            g.groups,
            g.experts,
            legal=(
                legal(g.facts, g.limit.path, [least], also=f" to {count(groups)}" if least < groups else ""),
                legal(g.facts, g.top_k.path, [open_to_it], also=" or less"),
                legal(g.facts, g.groups.path, g.possible(at_least=limit)),
            ),
        )


@lint("slow-experts", "the widths of experts take the grouped product")
def widths_take_the_grouped_product(facts: Facts) -> Iterator[Finding]:
    ffn, compute = _of_moe(facts, "ffn"), facts["precision.compute"]
    # On a CPU the grouped product is no faster than the loop, and fp64 has none.
    if ffn is None or facts["cluster.arch"].value == "cpu" or compute.value not in COMPUTE_BYTES:
        return
    multiple = STRIDE_BYTES // COMPUTE_BYTES[compute.value]
    for width in (ffn, facts["model.dim"]):
        if width.value % multiple:
            yield widths_take_the_grouped_product.at(
                f"{width.equation} is no multiple of {multiple}: rows in {compute.value} do not begin at every "
                f"{STRIDE_BYTES} bytes, so that experts are multiplied one after the other instead of at once",
                width,
                compute,
                legal=(legal(facts, width.path, neighbours(width.value, multiple)),),
            )


def _of_moe(facts: Facts, name: str) -> Fact | None:
    """A field of `model.moe`, or None where the model has no experts."""
    return facts.get(f"model.moe.{name}")


def _in_range(fact: Fact, value: int) -> bool:
    return fact.setting is None or fact.setting.within is None or fact.setting.within.contains(value)
