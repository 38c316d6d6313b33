"""How much memory do the model states take?"""

from __future__ import annotations

from typing import Any

from forgeplan.compiler.derived import derived
from forgeplan.compiler.passes.mesh import mesh_of
from forgeplan.compiler.passes.shards import rank_classes
from forgeplan.spec.quantity import BYTES
from forgeplan.spec.types import Measure


@derived("memory.states", Measure(BYTES, whole=True), "model", "optimizer", "precision", "mesh")
def states(model: Any, optimizer: Any, precision: Any, mesh: Any) -> int:
    """Bytes of parameters, gradients and optimizer state on the ranks that hold most."""
    classes = rank_classes(model, mesh_of(mesh), precision.params, precision.moments, optimizer.num_moments)
    return classes[0].state_bytes
