"""How do the axes that cut weights divide a parameter?

Said once, by the model's own account of its parameters. The compiler counts bytes by it, the executor cuts by it.
"""

from __future__ import annotations

from enum import Enum

from attrs import frozen


class Sum(Enum):
    """When the gradients that tp ranks hold of one and the same tensor are parts, to be summed over them."""

    NEVER = "never"
    """Every tp rank computes the whole gradient."""
    SEQUENCE = "sequence"
    """Under sequence parallelism: each rank sees its own positions."""
    ALWAYS = "always"
    """Each rank sees its own heads, or its own part of a product."""


@frozen
class Cut:
    """`tp` and `ep` are the dims that tensor and expert parallelism divide evenly; None leaves the tensor whole."""

    tp: int | None = None
    ep: int | None = None
    sum: Sum = Sum.NEVER
    """What becomes of gradients where tp leaves the tensor whole."""
    kv_heads: int = 0
    """Of a tensor of so many key or value heads: where `tp.kv = replicate` and tp does not divide them, the tensor is
    kept whole, and gradients are parts."""


WHOLE = Cut()
COLUMN = Cut(tp=0)
"""A weight whose outputs are divided, with its bias."""
ROW = Cut(tp=1)
"""A weight whose inputs are divided: the products of tp ranks are parts of a sum."""
PER_HEAD = Cut(sum=Sum.ALWAYS)
"""Used by every rank on its own heads, or added by one rank for all."""
PER_TOKEN = Cut(sum=Sum.SEQUENCE)
"""Used on the residual stream, which sequence parallelism divides."""
EXPERTS = Cut(ep=0)
"""A stack with one slice for each expert."""


def key_value(heads: int) -> Cut:
    """A weight that makes keys or values, with its bias."""
    return Cut(tp=0, kv_heads=heads)
