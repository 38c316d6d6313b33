"""How many sequences and tokens make a step?"""

from __future__ import annotations

from fractions import Fraction

from attrs import frozen

from forgeplan.compiler.passes.manager import Results, analysis
from forgeplan.spec.quantity import TOKENS, Quantity


@frozen
class BatchPlan:
    """global = accumulation · micro · length · data_ranks, in tokens."""

    micro: int
    length: int
    data_ranks: int
    accumulation: int

    @property
    def sequences(self) -> int:
        return self.accumulation * self.micro * self.data_ranks

    @property
    def tokens(self) -> int:
        return self.sequences * self.length


def microbatches(global_: Quantity, micro: int, length: int, data_ranks: int) -> Fraction:
    """Microbatches a data rank needs for a global batch in tokens or sequences; whole if the batch fits."""
    one = micro * data_ranks * (length if global_.dimension == TOKENS else 1)
    return Fraction(global_.amount) / one


@analysis("batch")
def batch(results: Results) -> BatchPlan:
    """The arithmetic of a step."""
    facts = results.facts
    names = ("batch.micro", "batch.length", "mesh.data_ranks", "batch.accumulation")
    return BatchPlan(*(facts[name].value for name in names))
