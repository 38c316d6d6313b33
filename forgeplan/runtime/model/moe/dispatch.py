"""How do tokens reach the ranks that hold their experts, and how do the outputs come back?

A rank's rows are sorted by expert, so by rank too. Counts are exchanged first, then rows. With nodes told apart, rows
go to the rank of the own node that has the place of their destination, and from there to its node: fewer and larger
messages between nodes.
"""

from __future__ import annotations

import torch
from attrs import frozen
from torch import Tensor

from forgeplan.runtime.model.moe.rows import picked, put_back
from forgeplan.runtime.parallel.axes import ExpertParallel
from forgeplan.runtime.parallel.collectives import Group, exchanged

# N rows, D model width, R ranks, L experts of a rank, E = R·L; M nodes, P places in a node, R = M·P


@frozen
class Hop:
    """One exchange of rows: `sent` to and `received` from each rank of the group in turn."""

    group: Group
    order_N: Tensor | None
    """Rows by destination; None if they are in that order."""
    sent: list[int]
    received: list[int]

    def there(self, x_ND: Tensor) -> Tensor:
        return exchanged(_ordered(x_ND, self.order_N), self.sent, self.received, self.group)

    def back(self, y_ND: Tensor) -> Tensor:
        return _restored(exchanged(y_ND, self.received, self.sent, self.group), self.order_N)


@frozen
class Dispatch:
    """The way of a rank's rows to the experts and back."""

    hops: tuple[Hop, ...]
    order_N: Tensor | None
    """Of the rows that arrived, which are sorted by sender, in the order of experts; None if there is one sender."""
    counts_L: Tensor
    """Rows for each expert of this rank."""

    def there(self, x_ND: Tensor) -> Tensor:
        """From rows for all experts, in their order, to those of all ranks for this rank's experts, in their order."""
        for hop in self.hops:
            x_ND = hop.there(x_ND)
        return _ordered(x_ND, self.order_N)

    def back(self, y_ND: Tensor) -> Tensor:
        """The inverse of `there`."""
        y_ND = _restored(y_ND, self.order_N)
        for hop in reversed(self.hops):
            y_ND = hop.back(y_ND)
        return y_ND


def planned(counts_E: Tensor, ep: ExpertParallel) -> Dispatch:
    """The way for `counts_E` rows for each expert. Every rank of the group takes part, also with no rows at all."""
    if ep.group.size == 1:
        return Dispatch((), None, counts_E)
    if ep.inside is None or ep.between is None:
        hop, counts_RL = _hop(counts_E.view(ep.group.size, -1), 0, ep.group)
        hops: tuple[Hop, ...] = (hop,)
    else:
        first, counts_PML = _hop(counts_E.view(ep.between.size, ep.inside.size, -1), 1, ep.inside)
        second, counts_MPL = _hop(counts_PML, 1, ep.between)
        hops, counts_RL = (first, second), counts_MPL.flatten(0, 1)
    return Dispatch(hops, _order_by(counts_RL, 1, sum(hops[-1].received)), counts_RL.sum(0))


def _hop(counts: Tensor, dim: int, group: Group) -> tuple[Hop, Tensor]:
    """An exchange along one dim of `counts`, which says how many rows each run of equal indices has, in their order.

    Returns it with the counts of the rows that arrive: the sender comes first, then the other dims in their order.
    """
    by_rank = counts.movedim(dim, 0)
    ones = [1] * group.size
    arriving = exchanged(by_rank, ones, ones, group)
    # The host waits here, once: an exchange must be told how much to move.
    sent, received = torch.stack([by_rank, arriving]).flatten(2).sum(2).tolist()
    return Hop(group, None if dim == 0 else _order_by(counts, dim, sum(sent)), sent, received), arriving


def _order_by(counts: Tensor, dim: int, num_rows: int) -> Tensor:
    """Rows in runs of `counts`, in the order of this dim first; runs that are equal in it keep their order."""
    starts = (counts.flatten().cumsum(0) - counts.flatten()).view(counts.shape).movedim(dim, 0).flatten()
    sizes = counts.movedim(dim, 0).flatten()
    moves = starts - (sizes.cumsum(0) - sizes)
    shifts_N = moves.repeat_interleave(sizes, output_size=num_rows)
    return shifts_N + torch.arange(num_rows, device=counts.device)


def _ordered(x_ND: Tensor, order_N: Tensor | None) -> Tensor:
    return x_ND if order_N is None else picked(x_ND, order_N)


def _restored(y_ND: Tensor, order_N: Tensor | None) -> Tensor:
    return y_ND if order_N is None else put_back(y_ND, order_N, len(order_N))
