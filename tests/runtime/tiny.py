"""How does a test get an execution plan without a compiler, and what is trained by it? As `forgeplan selftest` does."""

from __future__ import annotations

from fractions import Fraction

from forgeplan.runtime.selftest.data import Quiet, TinyData, sequence
from forgeplan.runtime.selftest.tiny import COSINE, adamw, decoder, execution_plan, moe, steps
from forgeplan.spec.quantity import SHARE, Quantity

__all__ = ["COSINE", "Quiet", "TinyData", "adamw", "decoder", "execution_plan", "moe", "sequence", "share", "steps"]


def share(text: str) -> Quantity:
    return Quantity(Fraction(text), SHARE)
