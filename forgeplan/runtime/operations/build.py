"""How does a model come into being without memory?"""

from __future__ import annotations

import torch

from forgeplan.plan.operations import Build
from forgeplan.runtime.executor import Bundle
from forgeplan.runtime.precision import dtype_of
from forgeplan.runtime.registry import executes, implementation


@executes(Build)
def build(operation: Build, bundle: Bundle) -> None:
    """Every module on the meta device, parameters in the plan's stored dtype."""
    spec = bundle.plan.job.model
    with torch.device("meta"):
        model = implementation("model", spec)(spec)
    bundle.model = model.to(dtype_of(bundle.plan.job.precision.params))
