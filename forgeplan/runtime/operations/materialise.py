"""When does the model get memory, and what is in it at first?"""

from __future__ import annotations

from forgeplan.plan.operations import Initialise, Materialise
from forgeplan.runtime.executor import Bundle
from forgeplan.runtime.init import initialise
from forgeplan.runtime.registry import executes


@executes(Materialise)
def materialise(operation: Materialise, bundle: Bundle) -> None:
    """Memory for this rank's shards, with whatever was in it before."""
    bundle.model.to_empty(device=bundle.device)


@executes(Initialise)
def fill(operation: Initialise, bundle: Bundle) -> None:
    initialise(bundle.model, operation.seed, bundle.placed)
