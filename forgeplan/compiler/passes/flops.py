"""How much arithmetic does a token cost?"""

from __future__ import annotations

from attrs import frozen

from forgeplan.compiler.passes.manager import Results, analysis
from forgeplan.compiler.passes.parameters import parameters_of


@frozen
class Flops:
    """Forward and backward, a token. `full` counts all of attention (PaLM, appendix B), `causal` half of it."""

    full: int
    causal: int


@analysis("flops", "parameters")
def flops(results: Results) -> Flops:
    """6·N + 12·L·H·d·S, and with half of the second term."""
    model, length = results.facts.block("model"), results.facts["batch.length"].value
    full = model.flops_per_token(length)
    products = 6 * parameters_of(model).num_matmul
    return Flops(full, products + (full - products) // 2)
