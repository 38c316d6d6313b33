"""When does the model get memory, and what is in it at first?"""

from __future__ import annotations

import torch

from forgeplan.plan.operations import Fsdp, Initialise, Materialise
from forgeplan.runtime.executor import Bundle
from forgeplan.runtime.init import initialise
from forgeplan.runtime.operations.fsdp import kept_on
from forgeplan.runtime.registry import executes


@executes(Materialise)
def materialise(operation: Materialise, bundle: Bundle) -> None:
    """Memory for this rank's shards, with whatever was in it before: where fsdp keeps them. Buffers are used as they
    are, so they are on the device."""
    fsdp = next(op for op in bundle.plan.program if isinstance(op, Fsdp))
    bundle.model.to_empty(device=kept_on(fsdp, bundle))
    for module in bundle.model.modules():
        for name, buffer in list(module.named_buffers(recurse=False)):
            setattr(module, name, torch.empty_like(buffer, device=bundle.device))


@executes(Initialise)
def fill(operation: Initialise, bundle: Bundle) -> None:
    initialise(bundle.model, operation.seed, bundle.placed)
