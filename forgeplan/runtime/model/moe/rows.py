"""How are rows of tokens put into another order, and back, with the same bits in every run?

torch's gradient of an index adds in an order of chance on a GPU. Here every row is used once, or a known number of
times, so gradients are moved, and added in a fixed order.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor


def picked(x_TD: Tensor, order_N: Tensor, copies: int = 1) -> Tensor:
    """Rows `order_N` of x with each row `copies` times in turn. A place may stand in `order_N` once, or not at all."""
    return _Pick.apply(x_TD, order_N, copies)


def put_back(y_ND: Tensor, order_N: Tensor, num_rows: int) -> Tensor:
    """The inverse: row i of y at place `order_N[i]` of `num_rows`; zeros where none came from."""
    return y_ND.new_zeros(num_rows, y_ND.shape[1]).index_copy(0, order_N, y_ND)


class _Pick(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x_TD: Tensor, order_N: Tensor, copies: int) -> Tensor:
        ctx.save_for_backward(order_N)
        ctx.shape, ctx.copies = x_TD.shape, copies
        return x_TD[order_N // copies if copies > 1 else order_N]

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> tuple[Tensor, None, None]:
        (order_N,) = ctx.saved_tensors
        num_rows, dim = ctx.shape
        back = put_back(gradients[0], order_N, num_rows * ctx.copies)
        return back.view(num_rows, ctx.copies, dim).sum(1) if ctx.copies > 1 else back, None, None


def with_scaled_gradient(x_ND: Tensor, factors_N1: Tensor) -> Tensor:
    """x; in backward each row of its gradient is multiplied by its factor."""
    return _ScaleGradient.apply(x_ND, factors_N1)


class _ScaleGradient(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x_ND: Tensor, factors_N1: Tensor) -> Tensor:
        ctx.save_for_backward(factors_N1)
        return x_ND.view_as(x_ND)

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> tuple[Tensor, None]:
        (factors_N1,) = ctx.saved_tensors
        return (gradients[0] * factors_N1).to(gradients[0].dtype), None
