"""May the gradients of a step wait unreduced for its last microbatch?"""

from __future__ import annotations

from fractions import Fraction

from forgeplan.spec.plan import Cluster

MOST = Fraction(1, 4)
"""Of a device's memory: gradients of the whole model may take that much, so that a step reduces them once."""


def gradients_fit(num_bytes: int, cluster: Cluster) -> bool:
    """A function of the plan alone, so that every rank decides alike. Unknown memory is too little, except on a CPU."""
    if cluster.hbm is None:
        return cluster.arch == "cpu"
    return num_bytes <= MOST * cluster.hbm
