"""What follows from the shape of the model?"""

from __future__ import annotations

from typing import Any

from forgeplan.compiler.derived import derived
from forgeplan.compiler.passes.parameters import parameters_of
from forgeplan.spec.types import COUNT


@derived("model.pad_vocab", COUNT, "model.vocab")
def pad_vocab(vocab: int) -> int:
    """Rows of embedding and head."""
    return vocab


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
    return int(model.flops_per_token(length))
