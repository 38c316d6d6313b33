"""What does every module of ours declare about itself?"""

from __future__ import annotations

from typing import ClassVar

from attrs import frozen
from torch import Tensor, nn

from forgeplan.runtime.parallel.axes import ALONE, Axes


@frozen
class Normal:
    """Initial values drawn from N(0, std)."""

    std: float


@frozen
class Constant:
    """Initial values all alike."""

    value: float


Initial = Normal | Constant


class Module(nn.Module):
    """Holds weights only: whatever forward computes, it returns. A replayed forward therefore computes the same."""

    recompute_unit: ClassVar[bool] = False
    """Whether activation checkpointing replays this module as a whole."""
    keeps_stored_dtype: ClassVar[bool] = False
    """Whether its weights take part in computations as they are stored, whatever the compute dtype."""
    has_data_dependent_shapes: ClassVar[bool] = False
    """Whether sizes of tensors inside follow from values: no one graph has all of it."""
    axes: Axes = ALONE
    """The ranks that this module's work is divided over; operations of the program set it."""

    def initial(self) -> dict[str, Initial]:
        """The initial values of the module's own parameters and buffers (not its children's), by attribute name."""
        return {}


def in_dtype_of(x: Tensor, weight: Tensor) -> Tensor:
    """The weight as it takes part in a computation with `x`: stored weights may have more bits than activations.

    Under FSDP the gathered weight already has the dtype and nothing happens.
    """
    return weight.to(x.dtype)
