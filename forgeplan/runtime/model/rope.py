"""By which angles are queries and keys rotated at a position?

Half-split layout: dimension i is paired with i + head_dim/2 (Su et al., 2021; GPT-NeoX). Nothing is stored: the tables
of a batch are computed once from its positions, so no cast, resume or allocation can spoil them.
"""

from __future__ import annotations

from functools import singledispatch
from math import ceil, floor, log, pi
from typing import Any, NamedTuple

import torch
from torch import Tensor

from forgeplan.runtime.precision import at_least_fp32, at_least_fp32_dtype
from forgeplan.spec.model.decoder import Rope
from forgeplan.spec.rope_scaling.scalings import Linear, Llama3, Ntk, Yarn

# B batch (or 1), S sequence, P pairs (head_dim / 2)


class Rotation(NamedTuple):
    """Cosines and sines (B, S, P) in at least fp32, times the attention factor of the scaling."""

    cos_BSP: Tensor
    sin_BSP: Tensor


def rotation(rope: Rope, head_dim: int, positions_BS: Tensor, length: int, dtype: torch.dtype) -> Rotation:
    """The tables at `positions_BS` for activations of `dtype`; `length` is the whole sequence's, cached part too."""
    frequencies_P, factor = scaled_frequencies(rope, head_dim, length)
    table_dtype = at_least_fp32_dtype(dtype)
    angles_BSP = positions_BS.to(table_dtype)[..., None] * frequencies_P.to(positions_BS.device, table_dtype)
    return Rotation(angles_BSP.cos() * factor, angles_BSP.sin() * factor)


def rotate(x_BSHd: Tensor, by: Rotation) -> Tensor:
    """Every head of x (B, S, heads, head_dim) rotated in at least fp32, returned in the dtype of x."""
    first, second = at_least_fp32(x_BSHd).chunk(2, dim=-1)
    cos, sin = by.cos_BSP[:, :, None, :], by.sin_BSP[:, :, None, :]
    return torch.cat([first * cos - second * sin, second * cos + first * sin], dim=-1).to(x_BSHd.dtype)


def scaled_frequencies(rope: Rope, head_dim: int, length: int) -> tuple[Tensor, float]:
    """Angle a position for each pair, as fp64 on the CPU, and the factor on queries and keys."""
    return _scale(rope.scaling, float(rope.theta), head_dim, length)


def _frequencies(theta: float, head_dim: int) -> Tensor:
    return theta ** -(torch.arange(0, head_dim, 2, dtype=torch.float64, device="cpu") / head_dim)


@singledispatch
def _scale(scaling: Any, theta: float, head_dim: int, length: int) -> tuple[Tensor, float]:
    """One function a kind of scaling."""
    raise TypeError(f"no rotary scaling {type(scaling).__name__}")


@_scale.register(type(None))
def _(scaling: None, theta: float, head_dim: int, length: int) -> tuple[Tensor, float]:
    return _frequencies(theta, head_dim), 1.0


@_scale.register(Linear)
def _(scaling: Linear, theta: float, head_dim: int, length: int) -> tuple[Tensor, float]:
    return _frequencies(theta, head_dim) / float(scaling.factor), 1.0


@_scale.register(Ntk)
def _(scaling: Ntk, theta: float, head_dim: int, length: int) -> tuple[Tensor, float]:
    beyond = max(length, scaling.original) / scaling.original
    stretch = float(scaling.factor) * beyond - (float(scaling.factor) - 1)
    return _frequencies(theta * stretch ** (head_dim / (head_dim - 2)), head_dim), 1.0


@_scale.register(Yarn)
def _(scaling: Yarn, theta: float, head_dim: int, length: int) -> tuple[Tensor, float]:
    """Pairs that turn more than `fast` times in `original` are kept, below `slow` divided (Peng et al., 2023)."""

    def pair_with(turns: float) -> float:
        return head_dim * log(scaling.original / (turns * 2 * pi)) / (2 * log(theta))

    first = max(floor(pair_with(float(scaling.fast))), 0)
    last = min(ceil(pair_with(float(scaling.slow))), head_dim - 1)
    pairs = torch.arange(head_dim // 2, dtype=torch.float64, device="cpu")
    divided = ((pairs - first) / max(last - first, 0.001)).clamp(0, 1)
    factor = float(scaling.factor)
    return _frequencies(theta, head_dim) * (1 - divided + divided / factor), 0.1 * log(factor) + 1


@_scale.register(Llama3)
def _(scaling: Llama3, theta: float, head_dim: int, length: int) -> tuple[Tensor, float]:
    """Kept above `high` turns in the original context, divided below `low`, blended between (Llama 3.1)."""
    frequencies = _frequencies(theta, head_dim)
    low, high = float(scaling.low), float(scaling.high)
    turns = scaling.original * frequencies / (2 * pi)
    kept = ((turns - low) / (high - low)).clamp(0, 1)
    return frequencies * (kept + (1 - kept) / float(scaling.factor)), 1.0
