"""How does AdamW change a weight?"""

from __future__ import annotations

import torch
from attrs import frozen
from torch import Tensor

from forgeplan.runtime.executor import Bundle
from forgeplan.runtime.optim.groups import Group, decay_groups
from forgeplan.runtime.optim.optimizer import zeros_for
from forgeplan.runtime.parallel.placed import local
from forgeplan.runtime.precision import at_least_fp32_dtype
from forgeplan.runtime.registry import register
from forgeplan.spec.optimizer.adamw import AdamW


@frozen
class Moments:
    """State of one parameter on this rank. `step` counts its updates (fp32 scalar)."""

    exp_avg: Tensor
    exp_avg_sq: Tensor
    step: Tensor


@register.optimizer("adamw", spec=AdamW)
def build_adamw(spec: AdamW, bundle: Bundle, moments: torch.dtype) -> AdamWOptimizer:
    planned = list(bundle.plan.job.model.parameters())
    groups = decay_groups(bundle.model, planned, float(spec.weight_decay), spec.decay_embeddings)
    return AdamWOptimizer(spec, groups, moments)


class AdamWOptimizer:
    """Works on the local parts of sharded parameters: the update is elementwise."""

    def __init__(self, spec: AdamW, groups: tuple[Group, ...], moments: torch.dtype) -> None:
        self.groups = groups
        self.peak_rate = float(spec.lr)
        self.betas = (float(spec.betas[0]), float(spec.betas[1]))
        self.eps = float(spec.eps)
        self.state = {
            name: Moments(zeros_for(p, moments), zeros_for(p, moments), torch.zeros((), device=p.device))
            for group in groups
            for name, p in group.parameters.items()
        }

    @torch.no_grad()
    def update(self, rate: float) -> None:
        for group in self.groups:
            parts = [
                (local(parameter), local(parameter.grad), self.state[name])
                for name, parameter in group.parameters.items()
                if parameter.grad is not None
            ]
            if parts:
                torch._foreach_add_([state.step for _, _, state in parts], 1)
                self._update(parts, rate, group.weight_decay)

    def _update(self, parts: list[tuple[Tensor, Tensor, Moments]], rate: float, weight_decay: float) -> None:
        fused = [part for part in parts if part[0].numel() and part[2].exp_avg.dtype == part[0].dtype]
        if fused:
            torch._fused_adamw_(
                [weight for weight, _, _ in fused],
                [gradient for _, gradient, _ in fused],
                [state.exp_avg for _, _, state in fused],
                [state.exp_avg_sq for _, _, state in fused],
                [],
                [state.step for _, _, state in fused],
                lr=rate,
                beta1=self.betas[0],
                beta2=self.betas[1],
                weight_decay=weight_decay,
                eps=self.eps,
                amsgrad=False,
                maximize=False,
            )
        for weight, gradient, state in parts:
            if weight.numel() and state.exp_avg.dtype != weight.dtype:
                adamw_(weight, gradient, state, rate, self.betas, self.eps, weight_decay)

    def named_state(self) -> dict[str, dict[str, Tensor]]:
        return {
            name: {"exp_avg": state.exp_avg, "exp_avg_sq": state.exp_avg_sq, "step": state.step}
            for name, state in self.state.items()
        }


def adamw_(
    weight: Tensor,
    gradient: Tensor,
    state: Moments,
    rate: float,
    betas: tuple[float, float],
    eps: float,
    weight_decay: float,
) -> None:
    """One update in place, computed in the widest of fp32 and the dtypes that weights and moments are stored in.

    w ← w·(1 − rate·decay) − rate·m̂ / (√v̂ + eps), with m̂ = m/(1 − β₁ᵗ), v̂ = v/(1 − β₂ᵗ) (Loshchilov and Hutter, 2019).
    """
    # On the device: reading the count would make the host wait for every parameter.
    updates = state.step.double()
    wide = at_least_fp32_dtype(torch.promote_types(weight.dtype, state.exp_avg.dtype))
    w, g = weight.to(wide), gradient.to(wide)
    m = state.exp_avg.to(wide).lerp(g, 1 - betas[0])
    v = state.exp_avg_sq.to(wide) * betas[1] + (1 - betas[1]) * g.square()
    root = v.sqrt() / (1 - betas[1] ** updates).sqrt() + eps
    w = w * (1 - rate * weight_decay) - (rate / (1 - betas[0] ** updates)) * m / root
    weight.copy_(w)
    state.exp_avg.copy_(m)
    state.exp_avg_sq.copy_(v)
