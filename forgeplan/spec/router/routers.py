"""By what do tokens choose their experts?"""

from __future__ import annotations

from fractions import Fraction
from typing import ClassVar

from attrs import frozen

from forgeplan.spec import types as t
from forgeplan.spec.registry import component
from forgeplan.spec.setting import Change, setting

RATE_SCHEDULES = ("constant", "cosine", "warmup")


@component("router", "softmax_topk", aliases=("softmax", "topk", "top_k"))
@frozen
class SoftmaxTopk:
    """Softmax over all experts, the `top_k` largest probabilities are the gates (Switch, Mixtral)."""

    has_bias: ClassVar[bool] = False
    """Whether a buffer is added to the scores for the choice of experts."""

    renormalise: bool = setting(
        t.Bool(), "divide the gates of a token by their sum", default="true", aliases=("norm_topk_prob",)
    )


@component("router", "sigmoid_topk", aliases=("sigmoid",))
@frozen
class SigmoidTopk:
    """Sigmoid scores, balanced without a loss by a bias on the choice (DeepSeek-V3, arXiv 2412.19437, section 2.1.2).

    A token takes the experts with the largest score + bias; its gates are their scores, without the bias, divided by
    their sum and multiplied by `scale`. After each update the bias of an expert grows by the rate if the expert had
    fewer tokens than the mean, and falls by it if it had more. `rate_schedule` says what the rate does over the run:
    `constant` keeps it; `cosine` lowers it from `rate` to 0 along half a cosine from the first update to the last;
    `warmup` raises it linearly from 0 to `rate` over the warm-up updates of the learning rate's schedule, and keeps it
    then (without warm-up updates it is constant).
    """

    has_bias: ClassVar[bool] = True

    scale: Fraction = setting(
        t.REAL, "factor on the gates", default="1", within="(0, )", aliases=("routed_scaling_factor",)
    )
    rate: Fraction = setting(
        t.REAL, "step of the balancing bias in one update", default="1e-3", within="[0, )", change=Change.RESUMABLE
    )
    rate_schedule: str = setting(
        t.OneOf(RATE_SCHEDULES), "the rate over the run", default="constant", change=Change.RESUMABLE
    )
