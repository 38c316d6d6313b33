"""What follows from the shape of the model?"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from forgeplan.compiler.derived import derived
from forgeplan.compiler.passes.parameters import parameters_of
from forgeplan.compiler.patterns import means
from forgeplan.spec.types import COUNT

FLOAT8_ROWS = 16
"""Float8 products take sizes in multiples of this."""


@derived("model.pad_vocab", COUNT, "model.vocab", "model.tie", "mesh.tp", "apply")
def pad_vocab(vocab: int, tie: bool, tp: int, apply: Sequence[Any]) -> int:
    """Rows of embedding and head: the least multiple of tp above the vocabulary, of 16·tp if the head is in float8."""
    rows = tp * (FLOAT8_ROWS if any(item.tag == "fp8" and converts_head(item, tie) for item in apply) else 1)
    return -(-vocab // rows) * rows


def converts_head(fp8: Any, tie: bool) -> bool:
    """Whether the patterns of the transform reach a head that is a layer of its own."""
    included = fp8.include == "all" or any(means(pattern, "head") for pattern in fp8.include)
    return not tie and included and not any(means(pattern, "head") for pattern in fp8.exclude)


@derived("model.params", COUNT, "model")
def params(model: Any) -> int:
    """Numbers that the model stores."""
    return parameters_of(model).num_total


@derived("model.active_params", COUNT, "model")
def active_params(model: Any) -> int:
    """Numbers that take part in computing one token."""
    return parameters_of(model).num_active


@derived("flops.per_token", COUNT, "model", "batch.length")
def flops_per_token(model: Any, length: int) -> int:
    """Floating-point operations of forward and backward, a token, attention without the causal half."""
    return _flops(model, length)


@lru_cache(maxsize=64)
def _flops(model: Any, length: int) -> int:
    """Asked in every view of a plan, and for every other value that is tried."""
    return int(model.flops_per_token(length))
