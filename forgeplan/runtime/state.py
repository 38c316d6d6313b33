"""What of a run is not in the tensors?"""

from __future__ import annotations

from attrs import define


@define
class TrainState:
    """Counters that a checkpoint stores and a resume restores; equal on every rank.

    Randomness is counter-based and the data order is arithmetic, so these numbers say all that is to be said.
    """

    step: int = 0
    """Completed steps, skipped ones included."""
    samples: int = 0
    """Sequences drawn from the training order, over all ranks."""
    tokens: int = 0
    """Positions trained on, over all ranks."""
    counted: int = 0
    """Labels counted in the loss, over all ranks."""
    skipped: int = 0
    """Steps whose update was skipped because of a non-finite value."""
    wall_seconds: float = 0.0
    """Time of training, over all resumes."""
