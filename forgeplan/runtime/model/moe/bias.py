"""How does the bias of a sigmoid router even out the load of experts, without a loss?

Once per update of the weights, from the counts of all microbatches and ranks (DeepSeek-V3, section 2.1.2).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import cos, pi
from typing import Any

import torch
from torch import Tensor, nn

from forgeplan.plan.execution_plan import ExecutionPlan
from forgeplan.spec.router.routers import SigmoidTopk
from forgeplan.spec.schedule.shapes import span_in_updates


def updated_bias(bias_E: Tensor, counts_E: Tensor, rate: float) -> Tensor:
    """b + rate·sign(mean count − count), then moved so that its mean is zero: only differences decide a choice."""
    # In whole numbers, so that an expert with exactly the mean stays where it is.
    moved_E = bias_E + rate * (counts_E.sum() - len(counts_E) * counts_E).sign().to(bias_E.dtype)
    return moved_E - moved_E.mean()


@torch.no_grad()
def balance(model: nn.Module, counts: Mapping[str, Tensor], rate: float) -> None:
    """Update the biases of a model in place. `counts` are those of the whole step, by the name of the block
    (`layers.3`), and the same on every rank."""
    for name, counts_E in counts.items():
        router: Any = model.get_submodule(f"{name}.moe.router")
        if router.bias is not None:
            router.bias.copy_(updated_bias(router.bias, counts_E, rate))


def rate_of(plan: ExecutionPlan, update: int) -> float:
    """The step of the biases in an update, counted from 1; zero for a model without them."""
    moe = plan.job.model.moe
    if moe is None or not moe.router.has_bias:
        return 0.0
    schedule = plan.job.schedule
    warmup = 0 if schedule is None else span_in_updates(schedule.warmup, plan.steps, plan.tokens_per_step)
    return rate_at(moe.router, update, plan.steps, warmup)


def rate_at(spec: SigmoidTopk, update: int, total: int | None, warmup: int) -> float:
    """`total` and `warmup` are updates of the run and of the learning rate's warm-up.

    Raises ValueError for a decay over a run whose length is not known.
    """
    return float(spec.rate) * RATES[spec.rate_schedule](update, total, warmup)


def _constant(update: int, total: int | None, warmup: int) -> float:
    return 1.0


def _cosine(update: int, total: int | None, warmup: int) -> float:
    if total is None:
        raise ValueError("a decay over a run whose length is not known")
    return 0.5 * (1 + cos(pi * (update - 1) / max(total - 1, 1)))


def _warmup(update: int, total: int | None, warmup: int) -> float:
    return min(update / max(warmup, 1), 1.0)


RATES: dict[str, Callable[[int, int | None, int], float]] = {
    "constant": _constant,
    "cosine": _cosine,
    "warmup": _warmup,
}
"""The rate as a factor of the plan's, by the word of the plan."""
