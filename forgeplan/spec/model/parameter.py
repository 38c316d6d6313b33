"""What is known about a tensor that a model stores, before any process exists?"""

from __future__ import annotations

from math import prod

from attrs import frozen

from forgeplan.spec.cut import WHOLE, Cut


@frozen
class Parameter:
    """`role` is one of embedding, head, linear, residual (output projections into the residual stream), router, experts
    (stacks of matrices, one an expert), experts_residual (their output projections), norm, bias, buffer."""

    name: str
    shape: tuple[int, ...]
    role: str
    cut: Cut = WHOLE

    @property
    def numel(self) -> int:
        return prod(self.shape)
