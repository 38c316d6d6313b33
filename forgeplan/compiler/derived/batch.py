"""What follows from the batch, over all ranks?"""

from __future__ import annotations

from math import floor

from forgeplan.compiler.derived import derived
from forgeplan.compiler.passes.batch import microbatches
from forgeplan.spec.quantity import SEQUENCES, TOKENS, Quantity
from forgeplan.spec.types import COUNT, SEQUENCE_COUNT, TOKEN_COUNT, Measures


@derived("batch.accumulation", COUNT, "batch.global", "batch.micro", "batch.length", "mesh.data_ranks")
def accumulation(global_: Quantity, micro: int, length: int, data_ranks: int) -> int:
    """Microbatches of one step on each data rank."""
    return max(1, floor(microbatches(global_, micro, length, data_ranks)))


@derived(
    "batch.global",
    Measures((TOKENS, SEQUENCES)),
    "batch.accumulation",
    "batch.micro",
    "batch.length",
    "mesh.data_ranks",
)
def global_batch(accumulation: int, micro: int, length: int, data_ranks: int) -> Quantity:
    """Positions of one step over all ranks."""
    return Quantity(accumulation * micro * length * data_ranks, TOKENS)


@derived("batch.sequences", SEQUENCE_COUNT, "batch.accumulation", "batch.micro", "mesh.data_ranks")
def sequences(accumulation: int, micro: int, data_ranks: int) -> int:
    """Sequences of one step over all ranks."""
    return accumulation * micro * data_ranks


@derived("batch.tokens", TOKEN_COUNT, "batch.sequences", "batch.length")
def tokens(sequences: int, length: int) -> int:
    """Positions of one step over all ranks."""
    return sequences * length
