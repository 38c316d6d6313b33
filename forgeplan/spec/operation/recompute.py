"""Which activations are computed again in backward instead of kept?"""

from __future__ import annotations

from attrs import frozen

from forgeplan.spec import types as t
from forgeplan.spec.registry import component
from forgeplan.spec.setting import Change, setting


@component("operation", "recompute")
@frozen
class Recompute:
    """Activation checkpointing of whole blocks (Chen et al., 2016)."""

    mode: str = setting(
        t.OneOf(("none", "full")),
        "keep all activations, or only the inputs of blocks",
        default="full",
        change=Change.COSMETIC,
    )
