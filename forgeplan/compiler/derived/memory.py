"""How much memory do the model states take?"""

from __future__ import annotations

from typing import Any

from forgeplan.compiler.derived import derived
from forgeplan.compiler.passes.shards import rank_classes
from forgeplan.plan.mesh import Mesh
from forgeplan.spec.quantity import BYTES
from forgeplan.spec.types import Measure


@derived(
    "memory.states", Measure(BYTES, whole=True), "model", "optimizer", "precision", "mesh.dp_replicate", "mesh.dp_shard"
)
def states(model: Any, optimizer: Any, precision: Any, dp_replicate: int, dp_shard: int) -> int:
    """Bytes of parameters, gradients and optimizer state on the ranks that hold most."""
    mesh = Mesh(dp_replicate=dp_replicate, dp_shard=dp_shard)
    classes = rank_classes(model, mesh, precision.params, precision.moments, optimizer.num_moments)
    return classes[0].state_bytes
