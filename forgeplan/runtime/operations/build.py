"""How does a model come into being without memory?"""

from __future__ import annotations

import torch
from torch import nn

from forgeplan.plan.operations import Build
from forgeplan.runtime.executor import Bundle
from forgeplan.runtime.precision import at_least_fp32_dtype, dtype_of
from forgeplan.runtime.registry import executes, implementation


@executes(Build)
def build(operation: Build, bundle: Bundle) -> None:
    """Every module on the meta device, parameters in the plan's stored dtype, buffers in at least fp32."""
    spec, dtype = bundle.plan.job.model, dtype_of(bundle.plan.job.precision.params)
    with torch.device("meta"):
        model = implementation("model", spec)(spec)
    for module in model.modules():
        for name, parameter in list(module.named_parameters(recurse=False)):
            setattr(module, name, nn.Parameter(parameter.to(dtype)))
        for name, buffer in list(module.named_buffers(recurse=False)):
            setattr(module, name, buffer.to(at_least_fp32_dtype(dtype)))
    bundle.model = model
