"""Which rank stands where, on which axes?"""

from __future__ import annotations

from forgeplan.compiler.explain.page import wrapped
from forgeplan.plan.execution_plan import ExecutionPlan
from forgeplan.plan.mesh import AXES

MANY_NODES = 8
MANY_DEVICES = 16
LETTERS = {"pp": "p", "dp_replicate": "r", "dp_shard": "s", "cp": "c", "tp": "t"}
PURPOSE = {
    "dp_replicate": "holds a whole copy of the sharded model; gradients are summed over it; reads other data",
    "dp_shard": "parameters, gradients and optimizer state are cut over it; each position reads other data",
}


def lines(plan: ExecutionPlan, width: int) -> list[str]:
    """The axes above 1 with what they do, then nodes × devices with the position of each rank."""
    mesh = plan.mesh
    if mesh.world == 1:
        return ["one device: every axis is 1"]
    axes = [axis for axis in AXES if mesh.degrees[axis] > 1]
    product = " · ".join(f"{axis} {mesh.degrees[axis]:,}" for axis in axes)
    per_node = plan.job.cluster.devices_per_node
    found = [f"{product} = {mesh.world:,} ranks; rank = {per_node} · node + device", ""]
    for axis in axes:
        found += wrapped(f"{LETTERS[axis]}  {axis}: {_reach(plan, axis)}; {PURPOSE[axis]}", width, "   ")
    return [*found, "", *_grid(plan, axes, width)]


def _reach(plan: ExecutionPlan, axis: str) -> str:
    """Whether neighbours along an axis are in one node or across nodes."""
    per_node = plan.job.cluster.devices_per_node
    inner = 1
    for later in AXES[AXES.index(axis) + 1 :]:
        inner *= plan.mesh.degrees[later]
    span = inner * plan.mesh.degrees[axis]
    if plan.job.cluster.nodes == 1 or (span <= per_node and per_node % span == 0):
        return "inside a node"
    return "across nodes" if inner >= per_node else "inside a node and across nodes"


def _grid(plan: ExecutionPlan, axes: list[str], width: int) -> list[str]:
    """A row for each node, wrapped to the width; of many nodes or devices the first few and the last."""
    nodes, per_node = plan.job.cluster.nodes, plan.job.cluster.devices_per_node
    rows = {node: _row(plan, axes, node * per_node, per_node) for node in _shown(nodes, MANY_NODES)}
    label = len(f"node {nodes - 1}")
    size = max(len(cell) for row in rows.values() for cell in row)
    columns = _columns(max(len(row) for row in rows.values()), (width - label - 3) // (size + 2))
    found = []
    for node, row in rows.items():
        if node and node - 1 not in rows:
            found.append("⋮".rjust(label))
        for first in range(0, len(row), columns):
            cells = "  ".join(cell.ljust(size) for cell in row[first : first + columns])
            found.append(f"{f'node {node}' if first == 0 else '':<{label}} │ {cells}")
    return found


def _columns(cells: int, fitting: int) -> int:
    """Cells of a line: all if they fit, else so many that the lines are equally full, else what fits."""
    fitting = max(1, fitting)
    if cells <= fitting:
        return cells
    even = max(n for n in range(1, fitting + 1) if cells % n == 0)
    return even if 2 * even >= fitting else fitting


def _row(plan: ExecutionPlan, axes: list[str], first_rank: int, per_node: int) -> list[str]:
    """The positions of a node's ranks: `r0 s3`."""
    cells, before = [], -1
    for device in _shown(per_node, MANY_DEVICES):
        if device != before + 1:
            cells.append("…")
        at = plan.mesh.coordinates(first_rank + device)
        cells.append(" ".join(f"{LETTERS[axis]}{at[axis]}" for axis in axes))
        before = device
    return cells


def _shown(number: int, many: int) -> list[int]:
    """All of few; of many the first half of what fits and the last one."""
    if number <= many:
        return list(range(number))
    return [*range(many // 2), number - 1]
