"""How narrow can a model be whose heads, widths and vocabulary divide over the ranks as the large ones do?"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from math import gcd
from typing import Any

from attrs import asdict, frozen

from forgeplan.compiler.facts import Facts
from forgeplan.compiler.passes.float8 import MULTIPLE
from forgeplan.compiler.shrink.alike import Features, Found, most_alike
from forgeplan.compiler.shrink.meshes import Arrangement
from forgeplan.plan.mesh import Mesh
from forgeplan.spec.job import ABSENT

MOST_HEADS = 16
HEAD_WIDTHS = (4, 6, 8, 16)
LEAST_WIDTH, LEAST_TOGETHER, MOST_WIDTH = 12, 16, 96
LEAST_FFN = 24
LEAST_VOCABULARY = 28
"""Small, and unlike one another, so that no tensor fits in the place of another."""


@frozen
class Heads:
    """Query heads, key and value heads, width of a head, width of the model."""

    heads: int
    kv_heads: int
    head_dim: int
    dim: int


def few_heads(facts: Facts, at: Arrangement) -> Found:
    """Heads, their width and that of the model."""
    model = facts.block("model")
    whole = Heads(model.heads, model.kv_heads, model.head_dim, model.dim)
    wanted = _features_of_heads(whole, facts.results("mesh"), facts)
    chosen = most_alike(wanted, _heads(at.mesh), lambda heads: _features_of_heads(heads, at.mesh, facts))
    return chosen.found({f"model.{name}": value for name, value in asdict(chosen.best).items()})


def _heads(mesh: Mesh) -> Iterator[Heads]:
    """The fewest and narrowest first. Each of several heads is tried with a model as wide, wider and narrower."""
    shapes = [
        (heads * width, heads, kv_heads, width)
        for heads, width in product(range(1, MOST_HEADS + 1), HEAD_WIDTHS)
        for kv_heads in range(1, heads + 1)
        if heads % mesh.tp == 0 and heads % kv_heads == 0 and heads * width >= LEAST_TOGETHER
    ]
    for together, heads, kv_heads, width in sorted(shapes):
        for dim in (together, *range(LEAST_WIDTH, min(2 * together, MOST_WIDTH) + 1)):
            yield Heads(heads, kv_heads, width, dim)


def _features_of_heads(at: Heads, mesh: Mesh, facts: Facts) -> Features:
    together, of_kv = at.heads * at.head_dim, at.kv_heads * at.head_dim
    on_rank = of_kv // gcd(at.kv_heads, mesh.tp)
    found: dict[str, Any] = {
        "one key and value head for several heads": at.kv_heads == 1 < at.heads,
        "a key and value head for each head": at.kv_heads == at.heads,
        "several key and value heads": at.kv_heads > 1,
        "heads as wide as the model": (together > at.dim) - (together < at.dim),
        **cut("width of the model", at.dim, mesh, facts),
        **cut("width of all heads", together // mesh.tp, mesh, facts),
        **cut("width of key and value heads", on_rank, mesh, facts),
    }
    if mesh.tp > 1:
        found |= {
            "several heads on a rank": at.heads > mesh.tp,
            "key and value heads divided over tp": at.kv_heads % mesh.tp == 0,
            "several key and value heads on a rank": at.kv_heads > mesh.tp,
        }
    if facts["model.qk_norm"].value:
        found |= over("width of a head", at.head_dim, mesh)
    return found


def narrow_mlps(facts: Facts, at: Arrangement) -> Found:
    """The hidden width of dense layers."""
    ffn, mesh = facts["model.ffn"], facts.results("mesh")
    wanted = _features_of_ffn(ffn.value, mesh, facts)
    candidates = range(at.mesh.tp * -(-LEAST_FFN // at.mesh.tp), at.mesh.tp * MOST_WIDTH, at.mesh.tp)
    chosen = most_alike(wanted, candidates, lambda width: _features_of_ffn(width, at.mesh, facts))
    multiplier = {"model.ffn_multiplier": ABSENT} if facts["model.ffn_multiplier"].written else {}
    return chosen.found({**multiplier, "model.ffn": chosen.best})


def _features_of_ffn(width: int, mesh: Mesh, facts: Facts) -> Features:
    # Where no layer is dense, nothing is as wide as this.
    local = width // gcd(width, mesh.tp)
    return cut("hidden width", local, mesh, facts)


def small_vocabulary(facts: Facts, at: Arrangement) -> Found:
    """Token ids, and the rows that hold them."""
    model, padded = facts.block("model"), facts["model.pad_vocab"]
    wanted = _features_of_ids(model.vocab, padded.value, facts.results("mesh"), facts)
    step = at.mesh.tp * (MULTIPLE if _reaches_the_head(facts) else 1)
    least = LEAST_VOCABULARY

    def candidates() -> Iterator[tuple[int, int]]:
        for vocab in range(least, least + 4 * MULTIPLE * at.mesh.tp):
            nearest = -(-vocab // step) * step
            yield from ((vocab, rows) for rows in ((nearest, nearest + step) if padded.written else (nearest,)))

    chosen = most_alike(wanted, candidates(), lambda ids: _features_of_ids(*ids, at.mesh, facts))
    vocab, rows = chosen.best
    return chosen.found({"model.vocab": vocab} | ({"model.pad_vocab": rows} if padded.written else {}))


def _features_of_ids(vocab: int, rows: int, mesh: Mesh, facts: Facts) -> Features:
    found = {"a padded vocabulary": rows > vocab, **cut("rows of the vocabulary", rows // mesh.tp, mesh, facts)}
    if mesh.tp > 1:
        found["a vocabulary that tp divides"] = vocab % mesh.tp == 0
    return found


def _reaches_the_head(facts: Facts) -> bool:
    return any(layer.name == "head" and layer.why is None for layer in facts.results("float8").layers)


def cut(what: str, rows: int, mesh: Mesh, facts: Facts) -> dict[str, bool]:
    """How what tp leaves of a width is cut further, and whether it is a multiple for float8 products."""
    found = over(what, rows, mesh)
    if facts.get("apply.fp8.recipe") is not None:
        found[f"{what} in multiples of {MULTIPLE}"] = rows % MULTIPLE == 0
    return found


def over(what: str, rows: int, mesh: Mesh) -> dict[str, bool]:
    """Whether the ranks that share a tensor with so many rows hold equally many of them."""
    return {f"{what} divided evenly": rows % mesh.fsdp_degree == 0} if mesh.fsdp_degree > 1 else {}
