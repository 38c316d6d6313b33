"""What does torch.compile translate, and with which backend?"""

from __future__ import annotations

from attrs import frozen

from forgeplan.spec import types as t
from forgeplan.spec.registry import component
from forgeplan.spec.setting import Change, setting


@component("operation", "compile", aliases=("torch_compile",))
@frozen
class Compile:
    """torch.compile of every block, in place; equal blocks share a graph."""

    backend: str = setting(
        t.OneOf(("inductor", "aot_eager", "eager")), "compiler backend", default="inductor", change=Change.COSMETIC
    )
    fullgraph: bool = setting(
        t.Bool(), "fail where a block does not become one graph", default="false", change=Change.COSMETIC
    )
    loss: bool = setting(t.Bool(), "compile the loss too", default="true", change=Change.COSMETIC)
