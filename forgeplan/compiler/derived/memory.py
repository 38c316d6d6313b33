"""How much memory do the model states take?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from forgeplan.compiler.derived import derived
from forgeplan.compiler.passes.layout import layout_of
from forgeplan.compiler.passes.mesh import mesh_of
from forgeplan.compiler.passes.shards import rank_classes
from forgeplan.spec.quantity import BYTES
from forgeplan.spec.types import Measure


@derived("memory.states", Measure(BYTES, whole=True), "model", "optimizer", "precision", "mesh", "apply")
def states(model: Any, optimizer: Any, precision: Any, mesh: Any, apply: Sequence[Any]) -> int | None:
    """Bytes of parameters, gradients and optimizer state on the ranks that hold most."""
    layout = layout_of(model, mesh_of(mesh), apply)
    return None if layout is None else rank_classes(model, layout, precision, optimizer.num_moments)[0].state_bytes
