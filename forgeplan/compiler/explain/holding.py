"""Which tensors are cut over which ranks, and which experts are where?"""

from __future__ import annotations

from attrs import frozen

from forgeplan.compiler.explain.mesh import FOLDED
from forgeplan.compiler.explain.page import table, wrapped
from forgeplan.compiler.explain.written import layout
from forgeplan.compiler.passes.parameters import parameters_of
from forgeplan.compiler.wording import listing
from forgeplan.plan.execution_plan import ExecutionPlan
from forgeplan.plan.mesh import Mesh
from forgeplan.plan.sharding import Division
from forgeplan.spec.model.parameter import Parameter

MANY_RANKS = 4
TENSORS = {
    "embedding": "embedding",
    "head": "head",
    "linear": "matrices",
    "residual": "matrices",
    "router": "routers",
    "experts": "experts",
    "experts_residual": "experts",
    "norm": "norms",
    "bias": "biases",
}
"""What tensors are called, by their role."""


@frozen
class _Cutting:
    """How tensors are divided, shapes aside."""

    weights: int
    data: int
    copies: int
    is_experts: bool
    inside: bool
    """FSDP cuts inside each expert, as there are more ranks than experts."""


def lines(plan: ExecutionPlan, width: int) -> list[str]:
    """A row for all tensors that are cut alike, and a sentence about experts; nothing for one rank."""
    if plan.mesh.world == 1:
        return []
    found = _cuttings(plan)
    rows: list[tuple[str, ...]] = [("", "numbers", "cut over", "parts", "copies")]
    rows += [
        (
            listing(names) if len(found) > 1 else "all tensors",
            f"{numbers:,}",
            _over(cutting, plan.mesh),
            f"{cutting.weights * cutting.data:,}",
            f"{cutting.copies:,}",
        )
        for cutting, (names, numbers) in found.items()
    ]
    about = [wrapped(_experts(plan, cutting), width) for cutting in found if cutting.is_experts]
    return [*_fitted(rows, width), *(["", *about[0]] if about else [])]


def _fitted(rows: list[tuple[str, ...]], width: int) -> list[str]:
    """The table, with names on lines of their own where it is too wide."""
    found = table(rows, "lrlrr")
    if all(len(line) <= width for line in found):
        return found
    numbers = table([("", *row[1:]) for row in rows], "lrlrr")
    names = [wrapped(row[0], width) for row in rows]
    return [line for name, row in zip(names, numbers, strict=True) for line in (*name, row)]


def _cuttings(plan: ExecutionPlan) -> dict[_Cutting, tuple[list[str], int]]:
    """Names of the tensors that are cut alike, and how many numbers are in them, over all stages."""
    where = layout(plan)
    names: dict[_Cutting, list[str]] = {}
    numbers: dict[_Cutting, int] = {}
    for parameter in parameters_of(plan.job.model).all:
        division = where.division(parameter.shape, parameter.cut)
        is_experts = parameter.cut.ep is not None
        inside = is_experts and division.data_dim != parameter.cut.ep
        cutting = _Cutting(division.weights, division.data, division.copies, is_experts, inside)
        name = _name(parameter, division, plan.mesh)
        if name not in names.setdefault(cutting, []):
            names[cutting].append(name)
        numbers[cutting] = numbers.get(cutting, 0) + parameter.numel
    return {cutting: (found, numbers[cutting]) for cutting, found in names.items()}


def _name(parameter: Parameter, division: Division, mesh: Mesh) -> str:
    if mesh.tp > 1 and parameter.role == "linear" and division.weight_dim is None:
        return "key and value matrices" if parameter.cut.kv_heads else "projections of mtp"
    return TENSORS[parameter.role]


def _over(cutting: _Cutting, mesh: Mesh) -> str:
    """`tp 8 · dp_shard 2`, `ep 8 · 4 groups`."""
    if cutting.is_experts and cutting.weights > 1:
        return f"ep {cutting.weights:,}" + (f" · {cutting.data:,} groups" if cutting.data > 1 else "")
    over_all = cutting.is_experts and cutting.data == mesh.expert_fold
    axes = ("dp_shard", "cp") if cutting.data > 1 else ()
    axes = FOLDED if over_all else (*(("tp",) if cutting.weights > 1 else ()), *axes)
    return " · ".join(f"{axis} {mesh.degrees[axis]:,}" for axis in axes if mesh.degrees[axis] > 1) or "nothing"


def _experts(plan: ExecutionPlan, cutting: _Cutting) -> str:
    """Which experts a rank computes with, and which part of them it stores."""
    number, ep = plan.job.model.moe.experts, plan.mesh.ep
    held = number // ep
    if cutting.inside:
        stored = f"1/{cutting.data:,} of each"
    else:
        most = -(-held // cutting.data)
        stored = f"{'at most ' if held % cutting.data else ''}{most:,} of these"
    if ep == 1:
        stores = f", and stores {stored}" if cutting.data > 1 else ""
        return f"Each rank computes with all {number:,} experts of a layer{stores}."
    shown = list(range(ep)) if ep <= MANY_RANKS else [0, 1, ep - 1]
    places = [f"{_run(e * held, held)} at e{e}" for e in shown]
    if len(shown) < ep:
        places.insert(-1, "…")
    stores = f" Each of the {cutting.data:,} groups stores {stored}." if cutting.data > 1 else ""
    return f"Of the {number:,} experts of a layer a rank computes with {held:,}: {listing(places)}.{stores}"


def _run(first: int, count: int) -> str:
    return f"{first:,}" if count == 1 else f"{first:,} to {first + count - 1:,}"
