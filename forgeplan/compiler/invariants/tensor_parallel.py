"""Do heads, hidden units and positions divide over the tensor-parallel ranks?"""

from __future__ import annotations

from collections.abc import Iterator
from math import gcd, lcm

from forgeplan.compiler.facts import Fact, Facts
from forgeplan.compiler.invariants.context_parallel import parts_of_a_sequence
from forgeplan.compiler.invariants.registry import Finding, Legal, divisors, invariant, legal, neighbours
from forgeplan.compiler.wording import count, plural


@invariant("FP0412", "`mesh.tp` divides the query heads")
def tp_divides_the_heads(facts: Facts) -> Iterator[Finding]:
    heads, tp = facts["model.heads"], facts["mesh.tp"]
    if heads.value % tp.value == 0:
        return
    yield tp_divides_the_heads.at(
        f"{plural(heads.value, 'query head')} cannot be divided over {plural(tp.value, 'tp rank')}: "
        f"{heads.value:,} % {tp.value:,} = {heads.value % tp.value:,}",
        tp,
        heads,
        legal=(_degrees(facts, heads.value),),
    )


@invariant("FP0413", "`mesh.tp` divides the key and value heads, or is a multiple of them with `tp.kv = replicate`")
def tp_fits_the_kv_heads(facts: Facts) -> Iterator[Finding]:
    heads, tp = facts["model.kv_heads"], facts["mesh.tp"]
    if heads.value % tp.value == 0:
        return
    kv = facts["apply.tp.kv"]
    if kv.value == "replicate" and tp.value % heads.value == 0:
        return
    wanted = "nor the other way round" if kv.value == "replicate" else f"and {kv.equation} gives each rank its own"
    fitting = [n for n in divisors(facts["model.heads"].value) if heads.value % n == 0 or n % heads.value == 0]
    yield tp_fits_the_kv_heads.at(
        f"{plural(heads.value, 'key and value head')} cannot be divided over {plural(tp.value, 'tp rank')}, {wanted}: "
        f"{heads.value:,} % {tp.value:,} = {heads.value % tp.value:,}",
        tp,
        heads,
        kv,
        legal=(
            legal(facts, "mesh.tp", [n for n in fitting if facts["cluster.devices"].value % n == 0]),
            legal(facts, "apply.tp.kv", ["replicate"] if kv.value == "shard" else []),
        ),
        notes=("with `replicate` every rank keeps all key and value heads, and tp may be a multiple of their number",)
        if kv.value == "shard"
        else (),
    )


@invariant("FP0414", "`mesh.tp` divides the hidden width of every MLP that it cuts")
def tp_divides_the_mlps(facts: Facts) -> Iterator[Finding]:
    tp = facts["mesh.tp"]
    for name, copies, ffn in _mlps(facts):
        width = copies * ffn.value
        if width % tp.value == 0:
            continue
        of = "" if copies == 1 else f"{copies:,} · {count(ffn.value)} = "
        yield tp_divides_the_mlps.at(
            f"the {of}{count(width)} hidden units of {name} cannot be divided over {plural(tp.value, 'tp rank')}: "
            f"{width:,} % {tp.value:,} = {width % tp.value:,}",
            tp,
            ffn,
            legal=(
                _degrees(facts, width),
                legal(facts, _decides(ffn), neighbours(ffn.value, tp.value // gcd(tp.value, copies))),
            ),
        )


def _mlps(facts: Facts) -> Iterator[tuple[str, int, Fact]]:
    """Each kind of MLP that tp cuts: an example's name, and its width as a factor and the field that has the rest."""
    model, moe = facts.block("model"), facts.block("model").moe
    dense = next((i for i in range(model.layers + model.mtp) if not model.is_moe(i)), None)
    if dense is not None:
        yield f"the MLP of layers.{dense}", 1, facts["model.ffn"]
    sparse = next((i for i in range(model.layers + model.mtp) if model.is_moe(i)), None)
    if sparse is not None and moe.shared:
        yield f"the shared experts of layers.{sparse}", moe.shared, facts["model.moe.ffn"]


def _decides(ffn: Fact) -> str:
    """The field that decides a width: that of an expert is the model's where nobody writes it."""
    return ffn.path if ffn.written else "model.ffn"


@invariant("FP0416", "sequence parallelism divides the positions evenly: `cp · tp` divides the length of a sequence")
def positions_divide_evenly(facts: Facts) -> Iterator[Finding]:
    tp = facts["mesh.tp"]
    if tp.value == 1 or not facts["apply.tp.sequence"].value:
        return
    length, cp = facts["batch.length"], facts["mesh.cp"]
    ranks = cp.value * tp.value
    if length.value % ranks == 0:
        return
    product = f"{ranks:,} ranks" if cp.value == 1 else f"cp · tp = {cp.value:,} · {tp.value:,} = {ranks:,} ranks"
    yield positions_divide_evenly.at(
        f"a sequence of {plural(length.value, 'token')} cannot be divided evenly over {product}: "
        f"{length.value:,} % {ranks:,} = {length.value % ranks:,}",
        length,
        tp,
        cp,
        facts["apply.tp.sequence"],
        legal=(
            legal(facts, "batch.length", neighbours(length.value, lcm(ranks, parts_of_a_sequence(facts)))),
            legal(facts, "apply.tp.sequence", [False]),
        ),
    )


def _degrees(facts: Facts, divided: int) -> Legal:
    """Legal degrees of tp, of those that divide a width and the devices."""
    return legal(facts, "mesh.tp", divisors(gcd(divided, facts["cluster.devices"].value)))
