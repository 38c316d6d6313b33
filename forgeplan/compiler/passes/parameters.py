"""Which tensors does the model store, and how many numbers are in them?"""

from __future__ import annotations

from functools import cached_property, lru_cache
from typing import Any

from attrs import frozen

from forgeplan.compiler.passes.manager import Results, analysis
from forgeplan.spec.cut import Cut
from forgeplan.spec.model.parameter import Parameter


@frozen(slots=False)
class Parameters:
    """All stored parameters of a model, in the order of its modules; a tied head is no parameter of its own."""

    all: tuple[Parameter, ...]
    num_total: int
    num_active: int
    """Numbers that take part in computing one token in use: of the routed experts those it is sent to, and no modules
    of multi-token prediction."""
    num_matmul: int
    """Numbers that a token meets in matrix products in training: without the input embedding; a tied head counts."""

    @cached_property
    def kinds(self) -> frozenset[tuple[tuple[int, ...], Cut]]:
        """Shapes and cuts that occur: layers are alike, so they are few."""
        return frozenset((p.shape, p.cut) for p in self.all)


@lru_cache(maxsize=64)
def parameters_of(model: Any) -> Parameters:
    """The parameters of a model component, from its own account of names and shapes."""
    found = tuple(model.parameters())
    total = sum(p.numel for p in found)
    return Parameters(found, total, model.num_active_parameters(), model.num_matmul_parameters())


@analysis("parameters")
def parameters(results: Results) -> Parameters:
    """Names, shapes and counts of everything that is stored."""
    return parameters_of(results.facts.block("model"))
