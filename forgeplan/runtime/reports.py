"""What does the training loop tell the world?"""

from __future__ import annotations

from attrs import frozen


@frozen
class StepReport:
    """One completed step; all values are of the whole job, not of a rank.

    `loss` is the language-model loss in nats a counted label; `z_loss` is the added term, apart. `grad_norm` is the
    norm before clipping. `tokens` and `counted` count from the beginning of the run, over all resumes. `skipped` says
    that the update was not made. `seconds` is the time of the step, `data_seconds` the part of it that waited for data.
    """

    step: int
    loss: float
    z_loss: float
    grad_norm: float
    lr: float
    tokens: int
    counted: int
    skipped: bool
    seconds: float
    data_seconds: float


@frozen
class EvalReport:
    """Loss in nats a counted label of one evaluation, after `step` completed steps."""

    name: str
    step: int
    loss: float
    counted: int
    seconds: float
