"""Which linear layers are computed in float8, and why not the others?

Layers are judged by what a tp rank holds of them. Sizes below which float8 does not pay are those of torchao 0.18,
measured on H100.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from functools import lru_cache
from typing import Any

from attrs import frozen

from forgeplan.compiler.facts import Poisoned
from forgeplan.compiler.passes.manager import Results, analysis
from forgeplan.compiler.passes.parameters import parameters_of
from forgeplan.compiler.patterns import meant
from forgeplan.plan.mesh import Mesh
from forgeplan.plan.operations import Tp
from forgeplan.plan.sharding import Division, division
from forgeplan.spec.cut import COLUMN, Sum
from forgeplan.spec.model.parameter import Parameter

MULTIPLE = 16
"""Float8 products take rows, inputs and outputs in multiples of this."""


class Why(Enum):
    """Why a linear layer keeps its format."""

    EXPERTS = "experts keep their format"
    ROUTER = "routers stay as they are"
    TIED = "the head is tied to the embedding"
    NOT_INCLUDED = "not named by `include`"
    EXCLUDED = "excluded by a pattern"
    MULTIPLE = f"not a multiple of {MULTIPLE}"
    SMALL = "too small to gain"


@frozen
class Linear:
    """A linear layer: `inputs` is K and `outputs` is N of its product on one tp rank. `why` is None if converted."""

    name: str
    inputs: int
    outputs: int
    why: Why | None
    of_local_positions: bool = False
    """Whether it sees this rank's part of the sequence only, where tp divides the sequence."""

    @property
    def reason(self) -> str:
        """Why it keeps its format, for a person: `120 % 16 = 8`. Empty if converted."""
        if self.why is Why.MULTIPLE:
            odd = (size for size in dict.fromkeys((self.inputs, self.outputs)) if size % MULTIPLE)
            return " and ".join(f"{size:,} % {MULTIPLE} = {size % MULTIPLE}" for size in odd)
        return "" if self.why is None else self.why.value


@frozen
class Report:
    """All linear layers of the model, in the order of its modules."""

    layers: tuple[Linear, ...]

    @property
    def converted(self) -> tuple[str, ...]:
        """Names of the layers that become float8."""
        return tuple(layer.name for layer in self.layers if layer.why is None)


def is_small_rowwise(inputs: int, outputs: int) -> bool:
    """Whether scaling every row costs more than the product saves: measured points of torchao."""
    return outputs <= 2048 or inputs <= 1024 or (outputs <= 4096 and inputs <= 2048)


def is_small_tensorwise(inputs: int, outputs: int) -> bool:
    """The same for one scale a tensor."""
    return inputs <= 4096 and outputs <= 1024


IS_SMALL: dict[str, Callable[[int, int], bool]] = {"rowwise": is_small_rowwise, "tensorwise": is_small_tensorwise}
"""By recipe; arguments are K and N."""

NEVER = {
    "experts": Why.EXPERTS,
    "experts_residual": Why.EXPERTS,
    "router": Why.ROUTER,
    "tied": Why.TIED,
}
"""By the role of a weight: what no pattern changes."""
_LINEAR = ("linear", "residual", "head", *NEVER)


@analysis("float8", "mesh")
def float8(results: Results) -> Report:
    """What becomes of each linear layer under `fp8`; empty without it."""
    facts, mesh = results.facts, results["mesh"]
    if facts.get("apply.fp8.recipe") is None:
        return Report(())
    tp = facts.transform("tp") if mesh.tp > 1 else Tp("mesh")
    return report_of(facts.block("model"), mesh, tp.sequence, tp.kv, facts.transform("fp8"))


@lru_cache(maxsize=64)
def report_of(model: Any, mesh: Mesh, sequence: bool, kv: str, options: Any) -> Report:
    """The report for a model; `sequence` and `kv` are options of tp. Raises Poisoned where tp divides a weight with a
    rest."""
    linears = [p for p in parameters_of(model).all if p.role in _LINEAR]
    if model.tie:
        linears.append(Parameter("head", (model.pad_vocab, model.dim), "tied", COLUMN))
    said = _said(tuple(_module(p) for p in linears), options.include, options.exclude)
    layers = []
    for parameter in linears:
        held = division(parameter.shape, parameter.cut, mesh, sequence=sequence, kv=kv)
        local = sequence and mesh.tp > 1 and parameter.cut.sum is Sum.SEQUENCE
        layers.append(_judged(parameter, held, options, said[_module(parameter)], local))
    return Report(tuple(layers))


def _module(linear: Parameter) -> str:
    return linear.name.removesuffix(".weight")


def _said(names: tuple[str, ...], include: Any, exclude: tuple[str, ...]) -> dict[str, Why | None]:
    """What the patterns say of each layer; None is a wish to convert it."""
    included = names if include == "all" else meant(include, names)
    excluded = frozenset(meant(exclude, names))
    said: dict[str, Why | None] = dict.fromkeys(names, Why.NOT_INCLUDED)
    return said | {name: Why.EXCLUDED if name in excluded else None for name in included}


def _judged(parameter: Parameter, held: Division, options: Any, said: Why | None, local: bool) -> Linear:
    if held.weight_dim is not None and parameter.shape[held.weight_dim] % held.weights:
        raise Poisoned("mesh.tp")
    outputs, inputs = held.weight_shape[-2:]
    why = NEVER.get(parameter.role, said)
    if why is None and (inputs % MULTIPLE or outputs % MULTIPLE):
        why = Why.MULTIPLE
    # Who names a layer wants it; the sizes are for those who name none.
    if why is None and options.include == "all" and options.small == "skip":
        why = Why.SMALL if IS_SMALL[options.recipe](inputs, outputs) else None
    return Linear(_module(parameter), inputs, outputs, why, local)
