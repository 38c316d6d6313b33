"""What is a row of the parity table?"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from attrs import evolve, field, frozen

from forgeplan.plan.execution_plan import ExecutionPlan
from forgeplan.plan.mesh import Mesh
from forgeplan.runtime.selftest.tiny import COSINE, decoder, execution_plan

SEQUENCES = 8
"""Of a step in every row, so that rows of one model share a reference."""


@frozen
class Row:
    """A layout with what is trained in it: as data, a plan only where it is needed."""

    name: str
    mesh: Mesh = field(factory=Mesh)
    accumulation: int = 1
    recompute: str | None = None
    reshard: str | int = "default"
    packed: bool = False
    schedule: Any = COSINE
    dtype: str = "fp64"
    model: dict[str, Any] = field(factory=dict)
    """Fields of the model that differ from the tiny one's."""
    z: Fraction = Fraction(0)
    axes: dict[str, dict[str, Any]] = field(factory=dict)
    """Options of tp, cp, ep, pp."""
    transforms: dict[str, dict[str, Any]] = field(factory=dict)
    """Further operations, with their options."""
    nodes: int = 1
    quick: bool = False
    """One of the few that have every axis and every pair of axes of the table between them."""

    @property
    def shape(self) -> dict[str, Any]:
        """The model's fields, the vocabulary padded as the compiler does."""
        vocab = self.model.get("vocab", 29)
        return {"pad_vocab": vocab + -vocab % self.mesh.tp} | self.model

    def plan(self) -> ExecutionPlan:
        return execution_plan(
            model=decoder(**self.shape),
            dtype=self.dtype,
            schedule=self.schedule,
            mesh=self.mesh,
            accumulation=self.accumulation,
            micro=SEQUENCES // self.mesh.data_ranks // self.accumulation,
            recompute=self.recompute,
            reshard=self.reshard,
            z=self.z,
            axes=self.axes,
            transforms=self.transforms,
            nodes=self.nodes,
        )

    def on_accelerators(self) -> Row:
        """The same layout where there is no fp64 and where fused kernels of attention want half precision."""
        return evolve(self, dtype="fp32", model=self.model | {"attention": "math"})

    @property
    def num_ranks(self) -> int:
        return self.mesh.world

    def __str__(self) -> str:
        return self.name.replace(" ", "_")
