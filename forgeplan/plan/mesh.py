"""Which ranks form each axis? Integers only; process groups are made from this in the runtime."""

from __future__ import annotations

from math import prod

from attrs import frozen

AXES = ("pp", "dp_replicate", "dp_shard", "cp", "tp")
"""Outer to inner: neighbours along `tp` are adjacent ranks. `ep` is no axis: it folds into dp_shard·cp·tp."""


@frozen
class Mesh:
    """Degrees of all axes; their product is the world size."""

    pp: int = 1
    dp_replicate: int = 1
    dp_shard: int = 1
    cp: int = 1
    tp: int = 1
    ep: int = 1

    @property
    def degrees(self) -> dict[str, int]:
        return {axis: getattr(self, axis) for axis in AXES}

    def describe(self) -> str:
        """The degrees above 1, for a person: `dp_shard 4, tp 2, ep 4`; empty for one rank."""
        degrees = self.degrees | {"ep": self.ep}
        return ", ".join(f"{axis} {degree}" for axis, degree in degrees.items() if degree > 1)

    @property
    def world(self) -> int:
        return prod(self.degrees.values())

    @property
    def data_ranks(self) -> int:
        """Ranks that read different sequences: D = dp_replicate·dp_shard."""
        return self.dp_replicate * self.dp_shard

    @property
    def fsdp_degree(self) -> int:
        """Ranks over which dense parameters are sharded: F = dp_shard·cp."""
        return self.dp_shard * self.cp

    @property
    def expert_fold(self) -> int:
        """Ranks that experts fold into: X = dp_shard·cp·tp; X = efsdp·ep."""
        return self.dp_shard * self.cp * self.tp

    def coordinates(self, rank: int) -> dict[str, int]:
        """Position of a rank along each axis."""
        position = {}
        for axis in reversed(AXES):
            rank, position[axis] = divmod(rank, getattr(self, axis))
        return {axis: position[axis] for axis in AXES}

    def rank(self, **coordinates: int) -> int:
        """The rank at these coordinates; axes left out are 0."""
        rank = 0
        for axis in AXES:
            rank = rank * getattr(self, axis) + coordinates.get(axis, 0)
        return rank

    def data_rank(self, rank: int) -> int:
        """Which of the data ranks this is: dp_replicate outer, dp_shard inner."""
        at = self.coordinates(rank)
        return at["dp_replicate"] * self.dp_shard + at["dp_shard"]

    def groups(self, *axes: str) -> list[list[int]]:
        """Ranks that differ only in their position along `axes`; one list a group, in rank order."""
        found: dict[tuple[int, ...], list[int]] = {}
        for rank in range(self.world):
            at = self.coordinates(rank)
            found.setdefault(tuple(v for a, v in at.items() if a not in axes), []).append(rank)
        return list(found.values())


def shard_sizes(rows: int, ranks: int) -> list[tuple[int, int]]:
    """How FSDP2 cuts `rows` (dim 0) over `ranks`, like torch.chunk: runs of (consecutive ranks, rows each)."""
    chunk = -(-rows // ranks)
    full, rest = divmod(rows, chunk)
    runs = [(full, chunk)] + ([(1, rest)] if rest else [])
    empty = ranks - sum(n for n, _ in runs)
    return runs + ([(empty, 0)] if empty else [])
