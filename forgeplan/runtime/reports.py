"""What does the training loop tell the world?"""

from __future__ import annotations

from attrs import Factory, frozen


@frozen
class RoutingTotals:
    """What the router of one layer did in a step.

    `balance_loss` and `z_loss` are times their weights. `counts` are the assignments to each expert, of which the share
    `dropped` found no room. `entropy` is the mean over tokens of the entropy of the router's scores, in nats.
    """

    balance_loss: float
    z_loss: float
    counts: tuple[int, ...]
    dropped: float
    entropy: float

    @property
    def imbalance(self) -> float:
        """Load of the busiest expert ÷ mean load."""
        return max(self.counts) * len(self.counts) / max(sum(self.counts), 1)


@frozen
class StepReport:
    """One completed step; all values are of the whole job, not of a rank.

    `loss` is the language-model loss in nats a counted label; `z_loss` and `mtp_loss` are added terms, apart.
    `grad_norm` is the norm before clipping. `tokens` and `counted` count from the beginning of the run, over all
    resumes. `skipped` says that the update was not made. `seconds` is the time of the step, `data_seconds` the part of
    it that waited for data.
    """

    step: int
    loss: float
    z_loss: float
    mtp_loss: float
    grad_norm: float
    lr: float
    tokens: int
    counted: int
    skipped: bool
    seconds: float
    data_seconds: float
    routing: dict[str, RoutingTotals] = Factory(dict)
    """By layer with experts."""


@frozen
class EvalReport:
    """Loss in nats a counted label of one evaluation, after `step` completed steps."""

    name: str
    step: int
    loss: float
    counted: int
    seconds: float
