"""What does generation remember of the tokens before?"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

# B batch, T cached positions, K kv heads, d head width


class KeyValues(NamedTuple):
    """Keys and values of one layer, (B, T, K, d); `KeyValues()` remembers nothing yet."""

    keys: Tensor | None = None
    values: Tensor | None = None

    def extended(self, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        """All keys and values, the given ones last."""
        if self.keys is None or self.values is None:
            return keys, values
        return torch.cat([self.keys, keys], 1), torch.cat([self.values, values], 1)


NOTHING = KeyValues()


class Cache(NamedTuple):
    """State of a generation: an argument of forward, and a result. `Cache()` is the empty one to start with."""

    total: int = 0
    """Tokens that the sequence will have, if known: only dynamic NTK scaling, whose angles depend on it, asks."""
    layers: dict[str, KeyValues] = {}  # noqa: RUF012 (never written to)
    positions_BT: Tensor | None = None
    documents_BT: Tensor | None = None

    @property
    def length(self) -> int:
        return 0 if self.positions_BT is None else self.positions_BT.shape[1]
