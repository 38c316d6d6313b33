"""What do ranks of a broken forgeplan train? Each function stands for `train_and_report`, and runs on every rank."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from forgeplan.plan.execution_plan import ExecutionPlan
from forgeplan.runtime import init
from forgeplan.runtime.executor import Bundle, build
from forgeplan.runtime.operations import tp
from forgeplan.runtime.parallel.placed import local
from forgeplan.runtime.selftest import executed


def scale_gradients_of_experts_by_ep(plan: ExecutionPlan, packed: bool, device_type: str = "cpu") -> Any:
    """As if each rank had averaged over the ranks that its experts are not on."""

    def broken(plan: ExecutionPlan, device: torch.device) -> Bundle:
        bundle = build(plan, device)

        def scale() -> None:
            for place, parameter in bundle.parts():
                if ".experts." in place.name and parameter.grad is not None:
                    local(parameter.grad).mul_(plan.mesh.ep)

        bundle.complete_gradients.append(scale)
        return bundle

    return _with(executed, "build", broken)(plan, packed, device_type)


def forget_to_sum_gradients_of_head_norms(plan: ExecutionPlan, packed: bool, device_type: str = "cpu") -> Any:
    """Norms of queries and keys see the heads of their own tp rank alone."""
    summed = tp._sum_parts

    def broken(bundle: Bundle) -> None:
        own = {
            place.name: local(parameter.grad).clone()
            for place, parameter in bundle.parts()
            if place.name.endswith(("q_norm.weight", "k_norm.weight")) and parameter.grad is not None
        }
        summed(bundle)
        for place, parameter in bundle.parts():
            if place.name in own and parameter.grad is not None:
                local(parameter.grad).copy_(own[place.name])

    return _with(tp, "_sum_parts", broken)(plan, packed, device_type)


def leave_norms_as_they_are(plan: ExecutionPlan, packed: bool, device_type: str = "cpu") -> Any:
    """With whatever was in the memory."""
    return _with(init, "_fill", without_norms)(plan, packed, device_type)


def fill_norms_by_rank(plan: ExecutionPlan, packed: bool, device_type: str = "cpu") -> Any:
    """Each rank draws its own values for the weights of norms."""

    def broken(plan: ExecutionPlan, device: torch.device) -> Bundle:
        bundle = build(plan, device)
        for place, parameter in bundle.parts():
            if "norm" in place.name:
                local(parameter.data).fill_(1 + bundle.meshes.rank / 8)
        return bundle

    return _with(executed, "build", broken)(plan, packed, device_type)


def without_norms(tensor: torch.Tensor, name: str, *rest: Any) -> None:
    """In place of `init._fill`."""
    if "norm" not in name:
        FILL(tensor, name, *rest)


FILL = init._fill


def _with(module: Any, name: str, broken: Any) -> Callable[..., Any]:
    def trained(*arguments: Any) -> Any:
        # Ranks live on after this test.
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(module, name, broken)
            return executed.train_and_report(*arguments)

    return trained
