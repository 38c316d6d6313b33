"""How do modules come to hold a part of their weights?

Before there is memory: a parameter on the meta device is replaced by a smaller one under the same name.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import nn

from forgeplan.runtime.executor import Bundle
from forgeplan.spec.cut import Cut


def cut_weights(bundle: Bundle, dim_of: Callable[[Cut], int | None]) -> None:
    """Leave this rank its part of every parameter that an axis cuts; `dim_of` says which dim the axis cuts, if any."""
    cuts = {p.name: p.cut for p in bundle.plan.job.model.parameters()}
    for prefix, module in bundle.model.named_modules():
        for attribute, parameter in list(module.named_parameters(recurse=False)):
            name = f"{prefix}.{attribute}".lstrip(".")
            if dim_of(cuts[name]) is not None:
                shape = bundle.placed[name].division.weight_shape
                part = torch.empty(shape, dtype=parameter.dtype, device=parameter.device)
                setattr(module, attribute, nn.Parameter(part, requires_grad=parameter.requires_grad))
