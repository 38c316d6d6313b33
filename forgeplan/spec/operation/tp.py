"""How are the weights of a layer divided over ranks?"""

from __future__ import annotations

from attrs import frozen

from forgeplan.spec import types as t
from forgeplan.spec.registry import component
from forgeplan.spec.setting import Change, setting


@component("operation", "tp", aliases=("tensor_parallel", "sequence_parallel", "sp"))
@frozen
class Tp:
    """Tensor parallel (Shoeybi et al., 2019): column and row products, vocabulary-parallel embedding, head and loss."""

    sequence: bool = setting(
        t.Bool(),
        "divide the sequence too where layers work on single tokens (Korthikanti et al., 2022)",
        default="true",
        change=Change.RESHARD,
        aliases=("sequence_parallel", "sp"),
    )
    kv: str = setting(
        t.OneOf(("shard", "replicate")),
        "divide key and value heads, or keep them all on every rank where there are fewer than ranks",
        default="shard",
        change=Change.RESHARD,
    )
