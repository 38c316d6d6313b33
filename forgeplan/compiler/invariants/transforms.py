"""Do the transforms stand in an order that computes what is meant, with options that the mesh can hold?"""

from __future__ import annotations

from collections.abc import Iterator

from forgeplan.compiler.facts import Facts, Poisoned
from forgeplan.compiler.invariants.registry import Finding, divisors, invariant, legal
from forgeplan.compiler.wording import listing
from forgeplan.diagnostics.diagnostic import Edit, Fix, Label, Safety
from forgeplan.plan.operations import OPERATIONS, first_inversion


@invariant("FP0436", "`fsdp.reshard` as a number divides the ranks that parameters are sharded over")
def reshard_divides_the_shard_axis(facts: Facts) -> Iterator[Finding]:
    reshard = facts.get("apply.fsdp.reshard")
    if reshard is None or isinstance(reshard.value, str):
        return
    shard = facts["mesh.dp_shard"]
    if shard.value % reshard.value == 0:
        return
    yield reshard_divides_the_shard_axis.at(
        f"parameters cannot stay sharded over {reshard.value} of {shard.value} ranks: "
        f"{shard.value} % {reshard.value} = {shard.value % reshard.value}",
        reshard,
        shard,
        legal=(legal(facts, "apply.fsdp.reshard", divisors(shard.value)),),
        help=(f"1 is `never`, {shard.value} is `always`",),
    )


@invariant("FP0440", "the transforms stand in an order in which each finds what it needs")
def order_of_transforms(facts: Facts) -> Iterator[Finding]:
    names = [item.tag for item in facts.block("apply")]
    inversion = first_inversion(names)
    if inversion is None:
        return
    earlier, later, breaks = inversion
    ordered = sorted(names, key=list(OPERATIONS).index)
    yield order_of_transforms.at(
        f"`{earlier}` stands before `{later}` in apply: {breaks}",
        _item(facts, earlier, "this comes too early"),
        _item(facts, later, f"must come before {earlier}"),
        help=(f"in order: apply = [{listing(ordered)}]",),
        notes=_further_inversions(names, (earlier, later)),
        fixes=_reordering(facts, names, ordered),
    )


def _item(facts: Facts, name: str, text: str) -> Label:
    return Label(facts.place(f"apply.{name}", "apply"), text)


def _further_inversions(names: list[str], first: tuple[str, str]) -> Iterator[str]:
    for i, earlier in enumerate(names):
        for later in names[i + 1 :]:
            breaks = OPERATIONS[later].before.get(earlier)
            if breaks and (earlier, later) != first:
                yield f"`{later}` must come before `{earlier}` too: {breaks}"


def _reordering(facts: Facts, names: list[str], ordered: list[str]) -> Iterator[Fix]:
    """Put each name at its place, if all of them stand there bare: options would have to move with them."""
    origins = {name: facts.leaves[f"apply.{name}"].origin for name in names if f"apply.{name}" in facts.leaves}
    if any(name not in origins or origins[name].text != name for name in names):
        return
    edits = (
        Edit(origins[here].span, origins[there].text)
        for here, there in zip(names, ordered, strict=True)
        if here != there
    )
    yield Fix("put the transforms in order", tuple(edits), Safety.SAFE)


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
            )
