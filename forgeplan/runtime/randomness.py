"""Which random numbers does a place in the model get?

Counter-based: a number is a hash of (seed, sequence of the training order, layer, name, place in the tensor). Nothing
depends on rank, layout, microbatch size or how often it is asked, and there is no generator whose state could be lost.
"""

from __future__ import annotations

from hashlib import sha256
from typing import NamedTuple

import torch
from attrs import evolve, frozen
from torch import Tensor

# B batch, S sequence, D model width

_BITS = 24
"""Resolution of a uniform number."""


@frozen
class Randomness:
    """Random numbers of one microbatch. `sample` is the global index of its first sequence, the others following, or of
    every row."""

    seed: int
    sample: int | Tensor
    places_S: Tensor | None = None
    """Places in the sequence of the positions that a rank holds; None is all of them, in order."""

    def at(self, places_S: Tensor | None) -> Randomness:
        """The numbers of those places."""
        return evolve(self, places_S=places_S)

    def noise(self, rows: int, layer: int | str, name: str, device: torch.device) -> Noise:
        """The numbers of one place in the model, for `rows` sequences."""
        key = int.from_bytes(sha256(f"{self.seed}|{layer}|{name}".encode()).digest()[:8], signed=True)
        rows_B = torch.arange(rows, device=device) + self.sample if isinstance(self.sample, int) else self.sample
        return Noise(_mix(_mix(rows_B) ^ key), self.places_S)


class Noise(NamedTuple):
    """Random numbers for a tensor of one microbatch, (B, S, …): only tensors, so that equal layers share a graph."""

    keys_B: Tensor
    """int64, of each sequence."""
    places_S: Tensor | None
    """Places in the sequence of the positions that a rank holds; None is all of them, in order."""

    def dropout(self, x_BSD: Tensor, probability: float) -> Tensor:
        """Elements set to zero with `probability`, the others divided by 1 − probability."""
        kept_BSD = self.bits(x_BSD.shape) >= round(probability * 2**_BITS)
        return torch.where(kept_BSD, x_BSD / (1 - probability), 0)

    def bits(self, shape: torch.Size) -> Tensor:
        """Uniform integers in [0, 2²⁴) for each element."""
        places = torch.arange(shape[1:].numel(), device=self.keys_B.device)
        if self.places_S is not None:
            inner = shape[2:].numel()
            places = (self.places_S[:, None] * inner + torch.arange(inner, device=places.device)).flatten()
        hashed = _mix(self.keys_B[:, None] + places[None, :] * _ODD)
        return _shifted(hashed, 64 - _BITS).view(shape)


_ODD = 0x9E3779B97F4A7C15 - 2**64
_FIRST = 0xBF58476D1CE4E5B9 - 2**64
_SECOND = 0x94D049BB133111EB - 2**64


def _mix(x: Tensor) -> Tensor:
    """The finaliser of SplitMix64 (Steele et al., 2014) on int64, whose products wrap around."""
    x = (x ^ _shifted(x, 30)) * _FIRST
    x = (x ^ _shifted(x, 27)) * _SECOND
    return x ^ _shifted(x, 31)


def _shifted(x: Tensor, places: int) -> Tensor:
    """Logical shift to the right: the sign bit moves like any other."""
    return (x >> places) & (2 ** (64 - places) - 1)
