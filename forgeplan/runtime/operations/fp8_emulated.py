"""What is a product of float8 factors on a device that has none?

torchao emulates in fp32, where sums in another order differ by their rounding, and now and then that moves a later
value to the next number of float8: layouts could not be compared. Here the factors are rounded by torchao, and
multiplied in fp64 where x is that; a bf16 or fp32 x is multiplied in fp32.

Where scales are powers of two, an fp64 x has the digits of float8 without its least number: a value that is tiny beside
the others of its row keeps its digits, whatever part of the row a rank has. All else is float8 as a device has it.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor


@torch._dynamo.allow_in_graph
class EmulatedProduct(torch.autograd.Function):
    """x·Wᵀ for x of shape (…, K) and W of (N, K), with the casts that a `Float8LinearConfig` has for each factor of the
    three products. W may be float8 already, as FSDP gathered it.
    """

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, config: Any) -> Tensor:
        ctx.save_for_backward(x, weight)
        ctx.config = config
        rows = _rounded(_rows(x), config.cast_config_input, -1, x.dtype, config)
        columns = _rounded(weight, config.cast_config_weight, -1, x.dtype, config)
        return torch.mm(rows, columns.t()).to(x.dtype).reshape(*x.shape[:-1], -1)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Any:
        (x, weight), config = ctx.saved_tensors, ctx.config
        rows, upstream, dtype = _rows(x), _rows(gradient), x.dtype
        by_row = _rounded(upstream, config.cast_config_grad_output, -1, dtype, config)
        by_column = _rounded(upstream, config.cast_config_grad_output_for_grad_weight, 0, dtype, config)
        of_x = torch.mm(by_row, _rounded(weight, config.cast_config_weight_for_grad_input, 0, dtype, config))
        of_weight = torch.mm(by_column.t(), _rounded(rows, config.cast_config_input_for_grad_weight, 0, dtype, config))
        return of_x.to(dtype).reshape(x.shape), of_weight.to(dtype), None


def _rows(tensor: Tensor) -> Tensor:
    return tensor.reshape(-1, tensor.shape[-1])


def _rounded(tensor: Tensor, cast: Any, dim: int, dtype: torch.dtype, config: Any) -> Tensor:
    """The values that float8 leaves of a factor; `dim` is the one that is summed over, where every row has a scale."""
    from torchao.float8.config import ScalingType
    from torchao.float8.float8_scaling_utils import get_maybe_axiswise_dim, hp_tensor_to_float8_dynamic
    from torchao.float8.float8_training_tensor import Float8TrainingTensor

    wide = torch.promote_types(dtype, torch.float32)
    values: Any = tensor
    if not isinstance(tensor, Float8TrainingTensor):
        if cast.scaling_type is ScalingType.DISABLED:
            return tensor.to(wide)
        if wide is torch.float64 and config.round_scales_to_power_of_2:
            return _with_digits_of(cast.target_dtype, tensor)
        values = hp_tensor_to_float8_dynamic(
            tensor,
            cast.target_dtype,
            None,
            scaling_granularity=cast.scaling_granularity,
            axiswise_dim=get_maybe_axiswise_dim(dim, cast.scaling_granularity),
            round_scales_to_power_of_2=config.round_scales_to_power_of_2,
        )
    rounded: Tensor = values._data.to(wide) / values._scale.to(wide)
    return rounded


def _with_digits_of(dtype: torch.dtype, tensor: Tensor) -> Tensor:
    """The nearest numbers with as many binary digits as `dtype` has, of any size; ties go to the even one."""
    mantissa, exponent = torch.frexp(tensor)  # 1/2 <= |mantissa| < 1
    spacing = torch.finfo(dtype).eps / 2
    return torch.ldexp((mantissa / spacing).round() * spacing, exponent)
