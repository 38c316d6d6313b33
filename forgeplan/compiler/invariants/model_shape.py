"""Do the widths of the model divide as its layers need?"""

from __future__ import annotations

from collections.abc import Iterator

from forgeplan.compiler.changes import Change
from forgeplan.compiler.facts import Facts
from forgeplan.compiler.invariants.registry import Finding, divisors, invariant, legal, neighbours
from forgeplan.compiler.wording import count


@invariant("FP0501", "the heads divide the width of the model, unless `head_dim` is written")
def heads_divide_the_width(facts: Facts) -> Iterator[Finding]:
    heads, dim = facts["model.heads"], facts["model.dim"]
    head_dim = facts.leaves.get("model.head_dim")
    if dim.value % heads.value == 0 or (head_dim is not None and head_dim.written):
        return
    yield heads_divide_the_width.at(
        f"{heads.value:,} heads do not divide model.dim = {count(dim.value)}: "
        f"{dim.value:,} % {heads.value:,} = {dim.value % heads.value:,}",
        heads,
        dim,
        legal=(
            legal(facts, "model.heads", [d for d in divisors(dim.value) if dim.value // d % 2 == 0]),
            legal(facts, "model.dim", neighbours(dim.value, 2 * heads.value)),
        ),
        help=("or write `model.head_dim`: heads · head_dim need not be the width of the model",),
    )


@invariant("FP0502", "the key and value heads divide the query heads")
def kv_heads_divide_the_heads(facts: Facts) -> Iterator[Finding]:
    heads, kv_heads = facts["model.heads"], facts["model.kv_heads"]
    if heads.value % kv_heads.value == 0:
        return
    rest = heads.value % kv_heads.value
    yield kv_heads_divide_the_heads.at(
        f"{heads.value:,} query heads cannot share {kv_heads.value:,} key and value heads evenly: "
        f"{heads.value:,} % {kv_heads.value:,} = {rest:,}",
        kv_heads,
        heads,
        legal=(legal(facts, "model.kv_heads", divisors(heads.value)),),
    )


@invariant("FP0503", "the width of a head is even")
def head_width_is_even(facts: Facts) -> Iterator[Finding]:
    head_dim = facts["model.head_dim"]
    if head_dim.value % 2 == 0:
        return
    parts = () if head_dim.written else (facts["model.dim"], facts["model.heads"])
    yield head_width_is_even.at(
        f"model.head_dim = {head_dim.value:,} is odd, and rotary positions turn pairs of dimensions",
        *((head_dim,) if head_dim.written else (*parts, head_dim)),
        legal=(legal(facts, "model.head_dim", neighbours(head_dim.value, 2)),),
    )


@invariant("FP0507", "`ffn` and `ffn_multiplier` are not both written")
def one_width_of_the_mlp(facts: Facts) -> Iterator[Finding]:
    ffn, multiplier = facts["model.ffn"], facts["model.ffn_multiplier"]
    if not (ffn.written and multiplier.written):
        return
    by_multiplier = -(-(8 * facts["model.dim"].value * multiplier.value // 3) // 256) * 256
    yield one_width_of_the_mlp.at(
        f"the MLP has two widths: ffn = {ffn.value:,}, and ffn_multiplier = {multiplier.text} "
        f"gives {int(by_multiplier):,}",
        multiplier,
        ffn,
        help=("delete one of the two",),
        changes=(Change(multiplier.path, None), Change(ffn.path, None)),
    )
