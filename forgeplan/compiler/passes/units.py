"""Which parameters are gathered together?

One FSDP unit each for the embedding, every block, every module of multi-token prediction, and final norm with head. A
tied embedding is the head too, so that it shares a unit with the final norm.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from attrs import frozen

from forgeplan.compiler.passes.manager import Results, analysis
from forgeplan.compiler.passes.parameters import parameters_of
from forgeplan.spec.model.parameter import Parameter

NUMBERED = ("layers", "mtp")
"""Lists of modules, each of which is a unit."""


@frozen
class Unit:
    """Parameters that FSDP gathers and frees as one."""

    name: str
    parameters: tuple[Parameter, ...]

    @property
    def numel(self) -> int:
        return sum(p.numel for p in self.parameters)


@lru_cache(maxsize=64)
def units_of(model: Any) -> tuple[Unit, ...]:
    """The units of a model, in the order in which forward needs them."""
    tied = getattr(model, "tie", False)
    groups: dict[str, list[Parameter]] = {}
    for parameter in parameters_of(model).all:
        groups.setdefault(_unit_name(parameter.name, tied), []).append(parameter)
    return tuple(Unit(name, tuple(found)) for name, found in groups.items())


def module_of(name: str) -> str:
    """The module that owns a parameter: `embedding`, `layers.3`, `mtp.0`, `norm`, `head`."""
    first, _, rest = name.partition(".")
    return f"{first}.{rest.partition('.')[0]}" if first in NUMBERED else first


def _unit_name(parameter: str, tied: bool) -> str:
    module = module_of(parameter)
    if "." in module:
        return module
    if tied:
        return "embedding + norm + head"
    return "embedding" if module == "embedding" else "norm + head"


@analysis("units")
def units(results: Results) -> tuple[Unit, ...]:
    """The FSDP units of the model."""
    return units_of(results.facts.block("model"))
