"""Which activations does a block forget and compute again in backward?"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch.utils.checkpoint import (
    SAC_IGNORED_OPS,
    CheckpointPolicy,
    SelectiveCheckpointContext,
    checkpoint,
    create_selective_checkpoint_contexts,
)

from forgeplan.plan.operations import Recompute
from forgeplan.runtime.executor import Bundle
from forgeplan.runtime.model.module import Module
from forgeplan.runtime.registry import executes

_NAMESPACES_KEPT = (["_c10d_functional"], ["c10d_functional"])
_OPERATIONS_KEPT = (
    "mm", "addmm", "bmm", "baddbmm", "_scaled_mm", "_grouped_mm", "_scaled_grouped_mm",
    "_scaled_dot_product_flash_attention", "_scaled_dot_product_flash_attention_for_cpu",
    "_scaled_dot_product_efficient_attention", "_scaled_dot_product_cudnn_attention",
    "_scaled_dot_product_attention_math", "_flash_attention_forward", "_efficient_attention_forward",
    "_varlen_attn", "flex_attention",
)  # fmt: skip
"""Matrix products and attention, by the names of their operators, whatever the overload."""
_MARKS_FOR_PROFILERS = {
    getattr(operator, overload)
    for operator in (torch.ops.profiler._record_function_enter_new, torch.ops.profiler._record_function_exit)
    for overload in operator.overloads()
}
"""FSDP sets them around a unit inside of a block, other ones when it is computed again."""


@executes(Recompute)
def recompute(operation: Recompute, bundle: Bundle) -> None:
    """Replay the forward of the planned blocks in backward.

    The forward itself is replaced, not the module: no name changes, and hooks of the unit (which gather its parameters)
    lie outside of what is replayed. Randomness is counter-based: there is no generator state to restore. A budget is
    kept where the graphs are divided: see `compile.py`.
    """
    contexts: dict[str, Callable[..., Any]] = {
        "full": checkpoint,
        "every": checkpoint,
        "selective": partial(checkpoint, context_fn=partial(create_selective_checkpoint_contexts, keeps)),
    }
    replayed = contexts.get(operation.mode)
    if replayed is None:
        return
    SAC_IGNORED_OPS.update(_MARKS_FOR_PROFILERS)
    for name, module in bundle.model.named_modules():
        if isinstance(module, Module) and module.recompute_unit and name in operation.blocks:
            module.forward = partial(replayed, module.forward, use_reentrant=False, preserve_rng_state=False)


def keeps(_: SelectiveCheckpointContext, operator: Any, *arguments: Any, **options: Any) -> CheckpointPolicy:
    """What costs much, or what all ranks must do together, is kept; everything between is cheap to compute again."""
    # "aten::mm", "aten::sum.dim_IntList", "flex_attention"
    *namespace, name = str(operator.name()).partition(".")[0].split("::")
    is_kept = name in _OPERATIONS_KEPT or namespace in _NAMESPACES_KEPT
    return CheckpointPolicy.MUST_SAVE if is_kept else CheckpointPolicy.PREFER_RECOMPUTE
