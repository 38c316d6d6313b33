"""Which value does a parameter start with?

A function of (seed, full name, global shape), never of rank, layout or order of construction. A tensor is cut into
blocks of whole rows, each with a generator of its own, so that a rank draws only the blocks that its rows lie in.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256
from math import prod

import numpy as np
import torch
from torch import Tensor, nn

from forgeplan.diagnostics.refusal import InternalError
from forgeplan.runtime.model.module import Constant, Initial, Module
from forgeplan.runtime.parallel.placed import Placed, local
from forgeplan.runtime.precision import at_least_fp32_dtype

BLOCK_ELEMENTS = 64 * 1024


@torch.no_grad()
def initialise(model: nn.Module, seed: int, placed: Mapping[str, Placed] | None = None) -> None:
    """Fill every parameter and buffer as its module declares; without `placed`, all of them are here as a whole.

    Raises InternalError for one without a declaration.
    """
    for prefix, module in model.named_modules():
        declared = module.initial() if isinstance(module, Module) else {}
        for attribute, tensor in _own_tensors(module):
            name = f"{prefix}.{attribute}".lstrip(".")
            if attribute not in declared:
                raise InternalError(f"{type(module).__name__} does not say how {name} is initialised")
            _fill(tensor, name, declared[attribute], seed, None if placed is None else placed[name])


def _own_tensors(module: nn.Module) -> Iterator[tuple[str, Tensor]]:
    yield from module.named_parameters(recurse=False)
    yield from module.named_buffers(recurse=False)


def _fill(tensor: Tensor, name: str, initial: Initial, seed: int, place: Placed | None) -> None:
    part = local(tensor)
    if isinstance(initial, Constant):
        part.fill_(initial.value)
        return
    if part.numel() == 0:
        return
    shape = tuple(part.shape) if place is None else place.division.shape
    rows_here, *inner = (slice(0, size) for size in shape) if place is None else place.slices
    first, num_rows = rows_here.start, part.shape[0]
    height = rows_per_block(shape)

    def fill_block(block: int) -> None:
        rows = normal_block(seed, name, shape, block)
        start = block * height
        low, high = max(start, first), min(start + rows.shape[0], first + num_rows)
        values = torch.from_numpy(rows)[(slice(low - start, high - start), *inner)]
        part[low - first : high - first].copy_(values.to(at_least_fp32_dtype(part.dtype)) * initial.std)

    blocks = range(first // height, (first + num_rows - 1) // height + 1)
    with ThreadPoolExecutor(torch.get_num_threads()) as pool:
        list(pool.map(fill_block, blocks))


def rows_per_block(shape: tuple[int, ...]) -> int:
    return max(1, BLOCK_ELEMENTS // prod(shape[1:]))


def normal_block(seed: int, name: str, shape: tuple[int, ...], block: int) -> np.ndarray:
    """Standard normals in fp32 of the block-th block of rows of the named tensor; the last block may be shorter."""
    height = rows_per_block(shape)
    rows = min(height, shape[0] - block * height)
    key = int.from_bytes(sha256(f"{seed}|{name}|{block}".encode()).digest()[:16])
    return np.random.Generator(np.random.Philox(key=key)).standard_normal((rows, *shape[1:]), dtype=np.float32)
