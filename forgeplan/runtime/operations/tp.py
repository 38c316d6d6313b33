"""How is every weight matrix of a layer divided over ranks?"""

from __future__ import annotations

import torch
from attrs import evolve

from forgeplan.plan.operations import Tp
from forgeplan.runtime.executor import Bundle
from forgeplan.runtime.parallel.axes import TensorParallel
from forgeplan.runtime.parallel.collectives import all_reduced
from forgeplan.runtime.parallel.cutting import cut_weights
from forgeplan.runtime.parallel.placed import local
from forgeplan.runtime.precision import dtype_of
from forgeplan.runtime.registry import executes


@executes(Tp)
def tp(operation: Tp, bundle: Bundle) -> None:
    """Leave each rank its part of every weight that tp cuts, and let modules exchange at their borders.

    Gradients of weights that stay whole are parts where ranks use them for different heads or positions; they are
    summed once a step.
    """
    group = bundle.meshes.group("tp")
    cut_weights(bundle, lambda cut: cut.tp)
    bundle.use(evolve(bundle.axes, tp=TensorParallel(group, operation.sequence)))
    bundle.complete_gradients.append(lambda: _sum_parts(bundle))


def _sum_parts(bundle: Bundle) -> None:
    """One exchange for all parameters whose gradients are parts, in the dtype of reduction if that has more bits."""
    gradients = [
        local(parameter.grad)
        for place, parameter in bundle.parts()
        if place.division.sum_over_tp and parameter.grad is not None
    ]
    if not gradients:
        return
    reduce = dtype_of(bundle.plan.job.precision.reduce)
    parts = torch.cat([gradient.flatten().to(torch.promote_types(gradient.dtype, reduce)) for gradient in gradients])
    whole = all_reduced(parts, bundle.axes.tp.group).split([gradient.numel() for gradient in gradients])
    for gradient, summed in zip(gradients, whole, strict=True):
        gradient.copy_(summed.view_as(gradient))
