"""How far is what a layout trained from what one process trained?

Compared are loss, gradient norm and learning rate of every step, each tensor's gradient at step 1 and, in fp64, each
weight at the end relative to how far it moved. Not in fp32: where a gradient is nearly zero, AdamW divides round-off by
its own root and makes whole steps of it. Initial weights are the same bits.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import inf

import torch
from torch import Tensor

from forgeplan.runtime.selftest.reference import Trained
from forgeplan.runtime.selftest.result import Deviation

WITHIN = {"fp64": 1e-9, "fp32": 1e-5}
INITIAL, GRADIENT, WEIGHT = "initial value", "gradient", "weight"


def deviations(trained: Trained, wanted: Trained, dtype: str) -> list[Deviation]:
    """Everything that can be compared in that dtype; `worst` of it tells the most."""
    within = WITHIN[dtype]
    found = [
        *_of_steps("loss", trained.losses, wanted.losses, within),
        *_of_steps("gradient norm", trained.norms, wanted.norms, within),
        *_of_steps("learning rate", trained.rates, wanted.rates, within),
        *_of_tensors(INITIAL, "initial {}", trained.initial, wanted.initial, wanted.initial, 0.0),
        *_of_tensors(GRADIENT, "gradient of {}", trained.gradients, wanted.gradients, wanted.gradients, within),
    ]
    if dtype == "fp64":
        moved = {name: wanted.weights[name] - initial for name, initial in wanted.initial.items()}
        found += _of_tensors(WEIGHT, "{} at the end", trained.weights, wanted.weights, moved, within)
    return found


def worst(found: list[Deviation]) -> Deviation:
    """The one that uses most of what it is allowed, the first of several."""
    return max(found, key=lambda deviation: deviation.excess)


def culprit(found: list[Deviation]) -> Deviation:
    """The one that tells most of a fault: a tensor that begins otherwise, else one whose first gradient is furthest
    off, as everything after it is so too."""
    wrong = [deviation for deviation in found if not deviation.is_same]
    firsts = ([d for d in wrong if d.kind == kind] for kind in (INITIAL, GRADIENT))
    return worst(next((some for some in firsts if some), found))


def _of_steps(what: str, ours: list[float], theirs: list[float], within: float) -> Iterator[Deviation]:
    if len(ours) != len(theirs):
        yield Deviation(f"{what}: {len(ours)} steps instead of {len(theirs)}", inf, within, what)
    for step, (our, their) in enumerate(zip(ours, theirs, strict=False), start=1):
        yield Deviation(f"{what} of step {step}", _relative(abs(our - their), abs(their)), within, what)


def _of_tensors(
    kind: str, what: str, ours: dict[str, Tensor], theirs: dict[str, Tensor], scales: dict[str, Tensor], within: float
) -> Iterator[Deviation]:
    for name in sorted(ours.keys() ^ theirs.keys()):
        yield Deviation(f"{what.format(name)}, which only one of the two has", inf, within, kind)
    for name in (name for name in theirs if name in ours):
        our, their = ours[name], theirs[name]
        if our.shape != their.shape:
            yield Deviation(f"{what.format(name)}, in another shape", inf, within, kind)
            continue
        yield Deviation(what.format(name), _relative(_norm(our - their), _norm(scales[name])), within, kind)


def _norm(x: Tensor) -> float:
    return float(torch.linalg.vector_norm(x.double()))


def _relative(distance: float, scale: float) -> float:
    """The share of the scale; of nothing, only nothing is no deviation."""
    return distance / scale if scale else 0.0 if distance == 0 else inf
