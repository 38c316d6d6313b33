"""How few experts are dealt, grouped and chosen as the many are?"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any

from attrs import asdict, frozen

from forgeplan.compiler.facts import Facts
from forgeplan.compiler.shrink.alike import Features, Found, most_alike
from forgeplan.compiler.shrink.meshes import Arrangement
from forgeplan.compiler.shrink.widths import cut, over
from forgeplan.plan.mesh import Mesh
from forgeplan.plan.sharding import division
from forgeplan.spec.cut import EXPERTS

MOST_EXPERTS = 32
LEAST_WIDTH, MOST_WIDTH = 12, 60


@frozen
class Experts:
    """Names are those of `model.moe`."""

    experts: int
    top_k: int
    groups: int
    group_limit: int
    shared: int
    ffn: int


def few_experts(facts: Facts, at: Arrangement, dim: int) -> Found:
    """Experts, their groups and widths, for a model of width `dim`."""
    moe = facts.block("model").moe
    if moe is None:
        return Found({})
    whole = Experts(moe.experts, moe.top_k, moe.groups, moe.group_limit, moe.shared, moe.ffn)
    wanted = _features(whole, facts.block("model").dim, facts.results("mesh"), facts)
    chosen = most_alike(wanted, _candidates(whole, at.mesh), lambda small: _features(small, dim, at.mesh, facts))
    return chosen.found({f"model.moe.{name}": value for name, value in asdict(chosen.best).items()})


def _candidates(whole: Experts, mesh: Mesh) -> Iterator[Experts]:
    """The fewest experts and the narrowest first."""
    groups = (1, 2, 4) if whole.groups > 1 else (1,)
    widths = range(mesh.tp * -(-LEAST_WIDTH // mesh.tp), MOST_WIDTH, mesh.tp)
    for experts in range(mesh.ep, MOST_EXPERTS + 1, mesh.ep):
        for number, top_k, ffn in product(groups, (1, 2, 3), widths):
            for limit in range(1, number + 1):
                is_possible = experts % number == 0 and (number == 1 or experts // number > 1)
                if is_possible and top_k <= limit * (experts // number):
                    yield Experts(experts, top_k, number, limit, min(whole.shared, 2), ffn)


def _features(at: Experts, dim: int, mesh: Mesh, facts: Facts) -> Features:
    size, on_rank = at.experts // at.groups, at.experts // mesh.ep
    found: dict[str, Any] = {
        "several experts for a token": at.top_k > 1,
        "experts that a token is not sent to": at.top_k < at.experts,
        "groups of experts": at.groups > 1,
        "groups that are closed to a token": at.group_limit < at.groups,
        "several groups that are open to a token": at.group_limit > 1,
        "shared experts": min(at.shared, 2),
        **over("rows of the router", at.experts, mesh),
    }
    if mesh.ep > 1:
        found |= {
            "several experts on a rank": on_rank > 1,
            "groups of experts inside a rank": on_rank % size == 0,
            "ranks inside a group of experts": size % on_rank == 0,
        }
    tp = facts.transform("tp")
    for name, shape in (("up", (at.experts, at.ffn, dim)), ("down", (at.experts, dim, at.ffn))):
        held = division(shape, EXPERTS, mesh, sequence=tp.sequence, kv=tp.kv)
        if held.data > 1:
            found |= {
                f"experts cut inside their {name}-projection": held.data_dim > 0,
                f"{name}-projections of experts divided evenly": held.weight_shape[held.data_dim] % held.data == 0,
            }
    return found | (cut("width of shared experts", at.shared * at.ffn // mesh.tp, mesh, facts) if at.shared else {})
