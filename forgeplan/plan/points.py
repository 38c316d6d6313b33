"""How many steps long is a part of the schedule?"""

from __future__ import annotations

from fractions import Fraction
from math import floor

from forgeplan.spec.quantity import SHARE, TOKENS, Quantity


def steps_of_part(part: Quantity, total_steps: int | None, tokens_per_step: int) -> int | None:
    """Whole steps of a part given in steps, tokens or a share of the run; None for a share of a run without length.

    Rounded down, so that parts which fill the run exactly still fit into it.
    """
    if part.dimension == SHARE:
        return None if total_steps is None else floor(Fraction(part.amount) * total_steps)
    if part.dimension == TOKENS:
        return floor(Fraction(part.amount) / tokens_per_step)
    return floor(part.amount)
