"""Which layers multiply in float8, and how are their weights scaled where they are gathered in it?"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from forgeplan.plan.operations import Fp8
from forgeplan.runtime.executor import Bundle
from forgeplan.runtime.model.linear import Head, Linear
from forgeplan.runtime.operations.fp8_emulated import EmulatedProduct
from forgeplan.runtime.parallel.collectives import Group, all_reduced
from forgeplan.runtime.parallel.placed import cast_before_gather, local
from forgeplan.runtime.registry import executes


@executes(Fp8)
def fp8(operation: Fp8, bundle: Bundle) -> None:
    """Let the planned layers that this rank holds multiply in float8; modules, names and stored weights stay.

    With `all_gather`, FSDP casts its shards before it gathers them, all with the scale of the whole weight.
    """
    product = Float8Product(operation)
    layers = {name: m for name, m in bundle.model.named_modules() if isinstance(m, Linear | Head)}
    converted = [layers[name] for name in operation.layers if name in layers]
    for layer in converted:
        layer.product = product
    group = bundle.meshes.group("fsdp")
    if operation.all_gather and group.size > 1:
        for layer in converted:
            layer.weight = product.cast_before_gather(layer.weight)
        for root in bundle.stages or [bundle.model]:
            Scales(group, product.target).keep_up(root, bundle)


class Float8Product:
    """x·Wᵀ + b by torchao, in place of `F.linear`.

    tensorwise: one scale for x, one for W (both E4M3) and one for the gradient (E5M2), each of what this rank
    multiplies. rowwise: a power of two for each row of each factor, E4M3 throughout. Scales are those of the values at
    hand. With `emulate`, values are rounded to float8 and multiplied in fp32, or in fp64 where x is that.
    """

    def __init__(self, operation: Fp8) -> None:
        config, layer, multiply, wrapper = _torchao()
        recipe = replace(config.from_recipe_name(operation.recipe), emulate=operation.emulate)
        made = layer.from_float(nn.Linear(16, 16, bias=False, device="meta"), recipe)
        self.config, self.of_products, self.multiply, self.wrapper = (
            made.config,
            made.linear_mm_config,
            multiply,
            wrapper,
        )

    def __call__(self, x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
        out: Tensor
        if self.config.emulate:
            out = EmulatedProduct.apply(x, weight, self.config)
        else:
            out = self.multiply(x, weight.t(), self.of_products, self.config)
        return out if bias is None else out + bias

    @property
    def target(self) -> torch.dtype:
        """What weights are cast to."""
        found: torch.dtype = self.config.cast_config_weight.target_dtype
        return found

    def cast_before_gather(self, weight: Any) -> nn.Parameter:
        """The same memory, as a tensor that FSDP asks for what to send."""
        return nn.Parameter(self.wrapper(weight, self.of_products, self.target), weight.requires_grad)


class Scales:
    """The scale of each weight that is gathered in float8, found for all of a model or stage in one exchange.

    Weights have new ones before the first forward, and after each update.
    """

    def __init__(self, group: Group, target: torch.dtype) -> None:
        self.group, self.target = group, target
        self.are_old = True

    def keep_up(self, root: nn.Module, bundle: Bundle) -> None:
        bundle.after_update.append(self.grow_old)
        root.register_forward_pre_hook(lambda module, _: self.renew(module))

    def grow_old(self) -> None:
        self.are_old = True

    @torch.no_grad()
    def renew(self, root: nn.Module) -> None:
        """The largest magnitude over the shards of all ranks becomes the largest number of the format."""
        from torchao.float8.float8_utils import amax_to_scale

        weights = list(_cast_before_gather(root)) if self.are_old else []
        if weights:
            shards = [local(weight) for weight in weights]
            peaks = torch.stack([shard.abs().amax() if shard.numel() else shard.new_zeros(()) for shard in shards])
            scales = amax_to_scale(all_reduced(peaks, self.group, "max"), self.target)
            for weight, scale in zip(weights, scales, strict=True):
                cast_before_gather(weight)._precomputed_scale = scale
        self.are_old = False


def _cast_before_gather(root: nn.Module) -> Iterator[nn.Parameter]:
    for parameter in root.parameters():
        if cast_before_gather(parameter) is not None:
            yield parameter


def _torchao() -> tuple[Any, Any, Any, Any]:
    """Configuration, layer, product and wrapped weight. The import writes of kernels that are not for this machine."""
    before = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        from torchao.float8.config import Float8LinearConfig
        from torchao.float8.float8_linear import Float8Linear, matmul_with_hp_or_float8_args
        from torchao.float8.fsdp_utils import WeightWithDynamicFloat8CastTensor
    finally:
        logging.disable(before)
    return Float8LinearConfig, Float8Linear, matmul_with_hp_or_float8_args.apply, WeightWithDynamicFloat8CastTensor
