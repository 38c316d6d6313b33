"""Do the transforms stand in an order that computes what is meant, with options that the mesh can hold?"""

from __future__ import annotations

from collections.abc import Iterator
from math import gcd

from forgeplan.compiler.changes import Change
from forgeplan.compiler.facts import Fact, Facts, Poisoned
from forgeplan.compiler.invariants.registry import Finding, divisors, invariant, legal
from forgeplan.compiler.wording import listing, plural
from forgeplan.diagnostics.diagnostic import Label, Safety
from forgeplan.plan.operations import OPERATIONS, first_inversion


@invariant("FP0436", "`fsdp.reshard` as a number divides the ranks that parameters are sharded over")
def reshard_divides_the_shard_ranks(facts: Facts) -> Iterator[Finding]:
    reshard = facts.get("apply.fsdp.reshard")
    if reshard is None or isinstance(reshard.value, str):
        return
    shard, cp = facts["mesh.dp_shard"], facts["mesh.cp"]
    ranks = shard.value * cp.value
    divided = [("parameters", ranks, (shard, cp)), *_ranks_of_experts(facts)]
    uneven = next(((what, n, parts) for what, n, parts in divided if n % reshard.value), None)
    if uneven is None:
        return
    what, number, parts = uneven
    yield reshard_divides_the_shard_ranks.at(
        f"{what} cannot stay sharded over {reshard.value:,} of {plural(number, 'rank')}: "
        f"{number:,} % {reshard.value:,} = {number % reshard.value:,}",
        reshard,
        *parts,
        legal=(legal(facts, "apply.fsdp.reshard", divisors(gcd(*(n for _, n, _ in divided)))),),
        help=(f"1 is `never`, {ranks:,} is `always`",) if ranks > 1 else ("no data rank has a part of them to keep",),
        notes=(f"{what} are sharded over {_product(parts)} = {plural(number, 'rank')}",) if len(parts) > 2 else (),
    )


def _ranks_of_experts(facts: Facts) -> Iterator[tuple[str, int, tuple[Fact, ...]]]:
    """Over how many ranks experts are sharded further, and the axes that say so."""
    if facts.block("model").moe is None:
        return
    shard, cp, tp, ep = (facts[f"mesh.{axis}"] for axis in ("dp_shard", "cp", "tp", "ep"))
    if tp.value == 1 or facts["apply.tp.sequence"].value:
        yield "experts", shard.value * cp.value * tp.value // ep.value, (shard, cp, tp, ep)


def _product(parts: tuple[Fact, ...]) -> str:
    *factors, divisor = (f"{part.value:,}" for part in parts)
    return f"dp_shard · cp · tp ÷ ep = {' · '.join(factors)} ÷ {divisor}"


@invariant("FP0440", "the transforms stand in an order in which each finds what it needs")
def order_of_transforms(facts: Facts) -> Iterator[Finding]:
    names = [item.tag for item in facts.block("apply")]
    inversion = first_inversion(names)
    if inversion is None or len(set(names)) < len(names):
        return  # Which of two to keep decides about the order.
    earlier, later, breaks = inversion
    ordered = sorted(names, key=list(OPERATIONS).index)
    yield order_of_transforms.at(
        f"`{earlier}` stands before `{later}` in apply: {breaks}",
        _item(facts, earlier, "this comes too early"),
        _item(facts, later, f"must come before {earlier}"),
        help=(f"in order: apply = [{listing(_as_written(facts, name) for name in ordered)}]",),
        notes=_further_inversions(names, (earlier, later)),
        changes=(Change("apply", None, Safety.SAFE, order=tuple(ordered)),),
    )


def _as_written(facts: Facts, name: str) -> str:
    """`tp { … }`, so that nobody leaves options behind."""
    leaf = facts.leaves.get(f"apply.{name}")
    return leaf.origin.text if leaf is not None and leaf.origin.text.startswith(name) else name


def _item(facts: Facts, name: str, text: str) -> Label:
    return Label(facts.place(f"apply.{name}", "apply"), text)


def _further_inversions(names: list[str], first: tuple[str, str]) -> Iterator[str]:
    for i, earlier in enumerate(names):
        for later in names[i + 1 :]:
            breaks = OPERATIONS[later].before.get(earlier)
            if breaks and (earlier, later) != first:
                yield f"`{later}` must come before `{earlier}` too: {breaks}"


@invariant("FP0441", "`apply` names each transform once, and `metrics.sinks` each sink")
def each_component_once(facts: Facts) -> Iterator[Finding]:
    for path, once in (("apply", "a transform is applied once"), ("metrics.sinks", "a sink receives a report once")):
        try:
            names = [item.tag for item in facts.block(path)]
        except Poisoned:
            continue
        for name in sorted({name for name in names if names.count(name) > 1}):
            yield each_component_once.at(
                f"`{name}` stands {names.count(name)} times in {path}, and {once}",
                Label(facts.place(f"{path}.{name}", f"{path}.{names.index(name)}", path), f"`{name}`"),
                help=(f"keep one `{name}`, with the options that are meant",),
                changes=_without_one(facts, path, name, names.count(name)),
            )


def _without_one(facts: Facts, path: str, name: str, times: int) -> Iterator[Change]:
    """Take out the last one, or the first."""
    for entry in (f"{path}.{name}#{times - 1}", f"{path}.{name}"):
        leaf = facts.leaves.get(entry)
        if leaf is not None:
            yield Change(entry, None, at=leaf.origin.span)
