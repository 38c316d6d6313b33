"""How many updates does the run make?"""

from __future__ import annotations

from forgeplan.compiler.derived import derived
from forgeplan.spec.types import STEP_COUNT, optional


@derived("budget.steps", optional(STEP_COUNT), "budget.tokens", "batch.tokens")
def steps(tokens: int | None, tokens_per_step: int) -> int | None:
    """Optimizer updates of the run; the last one is whole."""
    return None if tokens is None else -(-tokens // tokens_per_step)
