"""Which rank stands where, on which axes?"""

from __future__ import annotations

from forgeplan.compiler.explain.page import wrapped
from forgeplan.plan.execution_plan import ExecutionPlan
from forgeplan.plan.mesh import AXES, Mesh

MANY_NODES = 8
MANY_DEVICES = 16
LETTERS = {"pp": "p", "dp_replicate": "r", "dp_shard": "s", "cp": "c", "tp": "t", "ep": "e"}
PURPOSE = {
    "pp": "each position holds other layers; activations go from one to the next; all work on the same data",
    "dp_replicate": "holds a whole copy of the sharded model; gradients are summed over it; reads other data",
    "dp_shard": "parameters, gradients and optimizer state are cut over it; each position reads other data",
    "cp": "each position holds a part of every sequence, and gets the keys and values of all; parameters, gradients and"
    " optimizer state are cut over it too",
    "tp": "weight matrices are cut over it, and each position computes with its part; all work on the same data",
}
FOLDED = ("dp_shard", "cp", "tp")
"""Axes whose ranks ep borrows."""


def lines(plan: ExecutionPlan, width: int) -> list[str]:
    """The axes above 1 with what they do, then nodes × devices with the position of each rank."""
    mesh = plan.mesh
    if mesh.world == 1:
        return ["one device: every axis is 1"]
    axes = [axis for axis in AXES if mesh.degrees[axis] > 1]
    product = " · ".join(f"{axis} {mesh.degrees[axis]:,}" for axis in axes)
    per_node = plan.job.cluster.devices_per_node
    found = [*wrapped(f"{product} = {mesh.world:,} ranks; rank = {per_node} · node + device", width), ""]
    for axis in axes:
        found += wrapped(f"{LETTERS[axis]}  {axis}: {_reach(plan, axis)}; {PURPOSE[axis]}", width, "   ")
    if mesh.ep > 1:
        found += wrapped(f"{LETTERS['ep']}  ep: {_experts(plan)}", width, "   ")
        axes.append("ep")
    return [*found, "", *_grid(plan, axes, width)]


def groups_of_experts(mesh: Mesh) -> list[str]:
    """The first groups of ranks that together hold all experts: `0 to 7`, `8 to 15`."""
    groups = min(mesh.world // mesh.ep, 2)
    return [f"{group * mesh.ep:,} to {(group + 1) * mesh.ep - 1:,}" for group in range(groups)]


def _experts(plan: ExecutionPlan) -> str:
    mesh = plan.mesh
    first, *more = groups_of_experts(mesh)
    neighbours = f"ranks {first}" + (f", then {more[0]}" if more else "")
    if mesh.world > 2 * mesh.ep:
        neighbours += " and so on"
    folded = " · ".join(axis for axis in FOLDED if mesh.degrees[axis] > 1)
    return (
        f"{_across(plan, 1, mesh.ep)}; no axis of its own: of the ranks of {folded}, {mesh.ep:,} neighbours "
        f"({neighbours}) hold all experts between them, and send tokens to one another"
    )


def _reach(plan: ExecutionPlan, axis: str) -> str:
    """Whether neighbours along an axis are in one node or across nodes."""
    inner = 1
    for later in AXES[AXES.index(axis) + 1 :]:
        inner *= plan.mesh.degrees[later]
    return _across(plan, inner, plan.mesh.degrees[axis])


def _across(plan: ExecutionPlan, distance: int, degree: int) -> str:
    """The same of so many ranks at a distance from one another."""
    per_node, span = plan.job.cluster.devices_per_node, distance * degree
    if plan.job.cluster.nodes == 1 or (span <= per_node and per_node % span == 0):
        return "inside a node"
    return "across nodes" if distance >= per_node else "inside a node and across nodes"


def _grid(plan: ExecutionPlan, axes: list[str], width: int) -> list[str]:
    """A row for each node, wrapped to the width; of many nodes or devices the first few and the last."""
    nodes, per_node = plan.job.cluster.nodes, plan.job.cluster.devices_per_node
    label = len(f"node {nodes - 1}")
    spaced, close = (
        {node: _row(plan, axes, node * per_node, between) for node in _shown(nodes, MANY_NODES)}
        for between in (" ", "")
    )
    rows = close if _columns(close, width - label) > _columns(spaced, width - label) else spaced
    size, columns = _widest(rows), _columns(rows, width - label)
    found = []
    for node, row in rows.items():
        if node and node - 1 not in rows:
            found.append("⋮".rjust(label))
        for first in range(0, len(row), columns):
            cells = "  ".join(cell.ljust(size) for cell in row[first : first + columns])
            found.append(f"{f'node {node}' if first == 0 else '':<{label}} │ {cells}")
    return found


def _columns(rows: dict[int, list[str]], width: int) -> int:
    """Cells of a line: all if they fit, else so many that the lines are equally full, else what fits."""
    cells = max(len(row) for row in rows.values())
    fitting = max(1, (width - 1) // (_widest(rows) + 2))
    if cells <= fitting:
        return cells
    even = max(n for n in range(1, fitting + 1) if cells % n == 0)
    return even if 2 * even >= fitting else fitting


def _widest(rows: dict[int, list[str]]) -> int:
    return max(len(cell) for row in rows.values() for cell in row)


def _row(plan: ExecutionPlan, axes: list[str], first_rank: int, between: str) -> list[str]:
    """The positions of a node's ranks: `r0 s3`, or without a space where that would not fit."""
    cells, before = [], -1
    for device in _shown(plan.job.cluster.devices_per_node, MANY_DEVICES):
        if device != before + 1:
            cells.append("…")
        rank = first_rank + device
        at = plan.mesh.coordinates(rank) | {"ep": rank % plan.mesh.ep}
        cells.append(between.join(f"{LETTERS[axis]}{at[axis]}" for axis in axes))
        before = device
    return cells


def _shown(number: int, many: int) -> list[int]:
    """All of few; of many the first half of what fits and the last one."""
    if number <= many:
        return list(range(number))
    return [*range(many // 2), number - 1]
