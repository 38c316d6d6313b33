"""Which torch dtype does a word of the plan mean?"""

from __future__ import annotations

import torch
from torch import Tensor

DTYPES = {"fp64": torch.float64, "fp32": torch.float32, "bf16": torch.bfloat16}


def dtype_of(word: str) -> torch.dtype:
    return DTYPES[word]


def word_of(dtype: torch.dtype) -> str:
    """The plan's word for a dtype, or torch's name where the plan has none."""
    return next((word for word, known in DTYPES.items() if known == dtype), str(dtype).removeprefix("torch."))


def at_least_fp32(x: Tensor) -> Tensor:
    """`x` in a dtype that sums and exponentials are safe in: fp32, or fp64 if it already is."""
    return x.to(torch.promote_types(x.dtype, torch.float32))


def at_least_fp32_dtype(dtype: torch.dtype) -> torch.dtype:
    return torch.promote_types(dtype, torch.float32)
