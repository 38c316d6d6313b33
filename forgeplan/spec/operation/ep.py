"""How do tokens reach experts on other ranks?"""

from __future__ import annotations

from attrs import frozen

from forgeplan.spec import types as t
from forgeplan.spec.registry import component
from forgeplan.spec.setting import Change, setting


@component("operation", "ep", aliases=("expert_parallel",))
@frozen
class Ep:
    """Expert parallel: each rank holds some experts; tokens travel to them and back."""

    hierarchical: bool = setting(
        t.Bool(),
        "exchange inside a node first, then between nodes",
        default="mesh.ep > cluster.devices_per_node",
        change=Change.RESHARD,
    )
