"""How are parameters sharded over the data ranks?"""

from __future__ import annotations

from attrs import frozen

from forgeplan.spec import types as t
from forgeplan.spec.registry import component
from forgeplan.spec.setting import Change, setting


@component("operation", "fsdp", aliases=("fsdp2", "hsdp", "fully_shard"))
@frozen
class Fsdp:
    """Fully sharded data parallel, and the precision policy; always in the program."""

    reshard: str | int = setting(
        t.AnyOf((t.OneOf(("default", "always", "never")), t.COUNT)),
        "after forward: free gathered parameters (default: all units but the last), or keep them sharded over this many"
        " ranks",
        default="default",
        within="[1, )",
        change=Change.COSMETIC,
        aliases=("reshard_after_forward",),
    )
    offload: bool = setting(
        t.Bool(),
        "keep shards and optimizer state in host memory, and update there",
        default="false",
        change=Change.COSMETIC,
        aliases=("cpu_offload",),
    )
