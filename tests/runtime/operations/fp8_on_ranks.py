"""What does a rank see of weights that are gathered in float8?"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.distributed.tensor import DTensor

from forgeplan.plan.execution_plan import ExecutionPlan
from forgeplan.runtime.data.microbatch import Microbatch
from forgeplan.runtime.executor import Bundle, build, named_tensors
from forgeplan.runtime.loss import forward_loss
from forgeplan.runtime.optim.optimizer import build_optimizer
from forgeplan.runtime.parallel.placed import cast_before_gather

LAYER = "layers.0.mlp.w_up.weight"


def gathered(plan: ExecutionPlan) -> dict[str, Any]:
    """Scales in use in a step and in the next, and those of the whole weights at that time."""
    bundle = build(plan, torch.device("cpu"))
    optimizer = build_optimizer(bundle)
    weights = {name: p for name, p in bundle.model.named_parameters() if cast_before_gather(p) is not None}
    step(bundle)
    sent, _ = cast_before_gather(weights[LAYER]).fsdp_pre_all_gather(None)
    found = {"sent": str(sent[0].dtype), "scales": in_use(weights), "expected": of_whole(bundle, optimizer, weights)}
    optimizer.update(1e-2)
    for after in bundle.after_update:
        after()
    step(bundle)
    found["scales after an update"] = in_use(weights)
    found["expected after an update"] = of_whole(bundle, optimizer, weights)
    tensors = named_tensors(bundle, optimizer).values()
    found["views are plain"] = all(type(t.to_local() if isinstance(t, DTensor) else t) is Tensor for t in tensors)
    return found


def step(bundle: Bundle) -> None:
    tokens = torch.arange(32).view(2, 16) % 29
    found = forward_loss(bundle, Microbatch(tokens, tokens.roll(-1, 1), None, None, 0), None)
    found.objective(torch.tensor(32), 1).backward()


def in_use(weights: dict[str, Tensor]) -> dict[str, float]:
    return {name: cast_before_gather(weight)._precomputed_scale.item() for name, weight in weights.items()}


def of_whole(bundle: Bundle, optimizer: Any, weights: dict[str, Tensor]) -> dict[str, float]:
    tensors = named_tensors(bundle, optimizer)
    whole = {name: tensors[f"model.{name}"].full_tensor() for name in weights}  # type: ignore[attr-defined]
    return {name: (448 / tensor.abs().max().double()).float().item() for name, tensor in whole.items()}
