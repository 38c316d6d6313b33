"""What is minimised?"""

from __future__ import annotations

from fractions import Fraction

from attrs import frozen

from forgeplan.spec import types as t
from forgeplan.spec.registry import component
from forgeplan.spec.setting import setting


@component("loss", "cross_entropy")
@frozen
class CrossEntropy:
    """Cross entropy in fp32, summed over counted labels and divided by their global number in the step."""

    z: Fraction = setting(
        t.REAL, "weight of the z-loss, mean squared log-partition (PaLM)", default="0", within="[0, )"
    )
    mtp: Fraction = setting(
        t.REAL,
        "weight of the mean over the losses of the multi-token prediction modules (DeepSeek-V3, equation 25)",
        default="0.3",
        within="[0, )",
    )
