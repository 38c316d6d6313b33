"""What does a module know of the ranks it shares its work with?

Modules compute with `ALONE` what one process computes. Operations of the program hand them the groups of the axes that
they were cut over; the modules say where something crosses them.
"""

from __future__ import annotations

import torch
from attrs import field, frozen
from torch import Tensor

from forgeplan.runtime.parallel.collectives import Group, copied, gathered, scattered_sum, summed

SEQUENCE_DIM = 1


@frozen
class TensorParallel:
    """`sequence`: between `leave` and `enter` each rank holds its part of the positions instead of all of them."""

    group: Group = field(factory=Group)
    sequence: bool = True

    @property
    def parts(self) -> int:
        """Into how many the positions are divided between `leave` and `enter`."""
        return self.group.size if self.sequence else 1

    def enter(self, x_BSD: Tensor) -> Tensor:
        """All positions, for products with a rank's own columns."""
        return gathered(x_BSD, self.group, SEQUENCE_DIM) if self.sequence else copied(x_BSD, self.group)

    def leave(self, x_BSD: Tensor) -> Tensor:
        """The sum of the ranks' products with their rows: this rank's positions of it, or all."""
        return scattered_sum(x_BSD, self.group, SEQUENCE_DIM) if self.sequence else summed(x_BSD, self.group)

    def own(self, x_BS: Tensor) -> Tensor:
        """Of what lies along the positions (dim 1), this rank's between `leave` and `enter`."""
        return x_BS if self.parts == 1 else x_BS.chunk(self.parts, SEQUENCE_DIM)[self.group.index]


@frozen
class ContextParallel:
    """Each rank holds some positions of every sequence and gathers the keys and values of all, or passes them round."""

    group: Group = field(factory=Group)
    attention: str = "all_gather"
    balance: str = "head_tail"

    def places(self, length: int, index: int, device: torch.device) -> Tensor:
        """Places in the sequence of the positions that the index-th rank holds, in the order in which it holds them."""
        size = self.group.size
        if size == 1:
            return torch.arange(length, device=device)
        if self.balance == "none":
            return torch.arange(length, device=device).chunk(size)[index]
        halves = torch.arange(length, device=device).chunk(2 * size)
        return torch.cat([halves[index], halves[2 * size - 1 - index]])

    def own_places(self, length: int, device: torch.device) -> Tensor:
        return self.places(length, self.group.index, device)

    def all_places(self, length: int, device: torch.device) -> Tensor:
        """Places of gathered keys, in the order in which they come."""
        return torch.cat([self.places(length, index, device) for index in range(self.group.size)])

    def own(self, x_BS: Tensor) -> Tensor:
        """Of what lies along all positions (dim 1), this rank's."""
        return x_BS if self.group.size == 1 else x_BS[:, self.own_places(x_BS.shape[1], x_BS.device)]

    def gather(self, keys_BSKd: Tensor, values_BSKd: Tensor) -> tuple[Tensor, Tensor]:
        """Keys and values of all positions, in the order of `all_places`; one exchange for both."""
        if self.group.size == 1:
            return keys_BSKd, values_BSKd
        keys, values = gathered(torch.stack([keys_BSKd, values_BSKd]), self.group, 2)
        return keys, values


@frozen
class ExpertParallel:
    """Each of `group` holds an equal run of experts. `inside` and `between` are the same ranks seen as nodes: those of
    this node, and those with this rank's place on the other nodes; None where tokens travel in one exchange."""

    group: Group = field(factory=Group)
    inside: Group | None = None
    between: Group | None = None


@frozen
class Axes:
    """The groups of every axis that cuts the work of a module."""

    tp: TensorParallel = field(factory=TensorParallel)
    cp: ContextParallel = field(factory=ContextParallel)
    ep: ExpertParallel = field(factory=ExpertParallel)
    microbatch: Group = field(factory=Group)
    """Ranks that hold different tokens of one microbatch where layers work on single tokens: cp, and tp if it divides
    the sequence. Statistics of a microbatch are taken over them."""


ALONE = Axes()
