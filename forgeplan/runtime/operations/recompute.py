"""How is a block made to forget its activations and compute them again?"""

from __future__ import annotations

from functools import partial

from torch.utils.checkpoint import checkpoint

from forgeplan.plan.operations import Recompute
from forgeplan.runtime.executor import Bundle
from forgeplan.runtime.model.module import Module
from forgeplan.runtime.registry import executes


@executes(Recompute)
def recompute(operation: Recompute, bundle: Bundle) -> None:
    """Replay the forward of every recompute unit in backward.

    The forward itself is replaced, not the module: no name changes, and hooks of the unit (which gather its parameters)
    lie outside of what is replayed. Randomness is counter-based: there is no generator state to restore.
    """
    for name, module in bundle.model.named_modules():
        if isinstance(module, Module) and module.recompute_unit and name in operation.blocks:
            module.forward = partial(checkpoint, module.forward, use_reentrant=False, preserve_rng_state=False)
