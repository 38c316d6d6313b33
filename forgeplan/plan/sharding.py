"""Which part of a parameter does a rank hold?

First tp or ep cuts evenly, then FSDP cuts what is left over the data ranks, like torch.chunk. Integers only: the
compiler counts bytes by this, and the executor cuts, fills, measures and stores by it.
"""

from __future__ import annotations

from attrs import evolve, frozen

from forgeplan.plan.mesh import Mesh
from forgeplan.spec.cut import Cut, Sum

Slices = tuple[slice, ...]


@frozen
class Division:
    """How the ranks of one pipeline stage divide a tensor.

    `weights` of them cut dim `weight_dim`, and `data` of them what is left at dim `data_dim`. `copies` ranks hold each
    part. `expert` says over which ranks: those of the experts' view of the mesh, or the dense one.
    """

    shape: tuple[int, ...]
    weight_dim: int | None
    weights: int
    data_dim: int
    data: int
    copies: int
    expert: bool
    sum_over_tp: bool
    """Whether the tp ranks' gradients are parts of one."""

    @property
    def weight_shape(self) -> tuple[int, ...]:
        """Shape of what tp or ep leaves, which FSDP gathers and modules compute with."""
        if self.weight_dim is None:
            return self.shape
        return tuple(size // self.weights if dim == self.weight_dim else size for dim, size in enumerate(self.shape))

    def slices(self, weight_index: int, data_index: int) -> Slices:
        """The part at these positions among `weights` and `data`; it may be empty."""
        starts, sizes = [0] * len(self.shape), list(self.weight_shape)
        if self.weight_dim is not None:
            starts[self.weight_dim] = weight_index * sizes[self.weight_dim]
        if self.shape:
            first, held = chunk(sizes[self.data_dim], self.data, data_index)
            starts[self.data_dim] += first
            sizes[self.data_dim] = held
        return tuple(slice(start, start + size) for start, size in zip(starts, sizes, strict=True))


def chunk(rows: int, parts: int, index: int) -> tuple[int, int]:
    """(first row, rows) of the index-th part as torch.chunk cuts: all parts alike, the last ones shorter or empty."""
    size = -(-rows // parts)
    first = min(index * size, rows)
    return first, min(size, rows - first)


def division(shape: tuple[int, ...], cut: Cut, mesh: Mesh, *, sequence: bool, kv: str) -> Division:
    """`sequence` and `kv` are the options of tp."""
    if cut.kv_heads % mesh.tp and kv == "replicate":
        cut = evolve(cut, tp=None, sum=Sum.ALWAYS)
    if cut.ep is not None:
        return _of_experts(shape, cut.ep, mesh, sequence)
    is_cut = cut.tp is not None and mesh.tp > 1
    return Division(
        shape=shape,
        weight_dim=cut.tp if is_cut else None,
        weights=mesh.tp if is_cut else 1,
        data_dim=0,
        data=mesh.fsdp_degree,
        copies=mesh.dp_replicate * (1 if is_cut else mesh.tp),
        expert=False,
        sum_over_tp=mesh.tp > 1 and (cut.sum is Sum.ALWAYS or (cut.sum is Sum.SEQUENCE and sequence)),
    )


def _of_experts(shape: tuple[int, ...], dim: int, mesh: Mesh, sequence: bool) -> Division:
    """Experts see the tokens of all ranks that they fold into; without sequence parallelism, tp ranks see the same."""
    whole_over_tp = mesh.tp > 1 and not sequence
    data = mesh.fsdp_degree if whole_over_tp else mesh.expert_fold // mesh.ep
    rows = shape[dim] // mesh.ep
    # Few experts over many ranks: the next dim, if that leaves no rank without a part.
    next_dim = dim + 1
    data_dim = next_dim if rows < data and shape[next_dim] % data == 0 else dim
    return Division(
        shape=shape,
        weight_dim=dim if mesh.ep > 1 else None,
        weights=mesh.ep,
        data_dim=data_dim,
        data=data,
        copies=mesh.dp_replicate * (mesh.tp if whole_over_tp else 1),
        # With neither tp nor ep, the ranks that experts fold into are the data ranks.
        expert=not whole_over_tp and mesh.tp * mesh.ep > 1,
        sum_over_tp=False,
    )
