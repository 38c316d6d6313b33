"""How do ranks come to hold parts of every sequence?"""

from __future__ import annotations

from attrs import evolve

from forgeplan.plan.operations import Cp
from forgeplan.runtime.executor import Bundle
from forgeplan.runtime.parallel.axes import ContextParallel
from forgeplan.runtime.registry import executes


@executes(Cp)
def cp(operation: Cp, bundle: Bundle) -> None:
    """Let the model cut the sequences it gets, and attention reach the keys and values of the other parts."""
    group = bundle.meshes.group("cp")
    bundle.use(evolve(bundle.axes, cp=ContextParallel(group, operation.attention, operation.balance)))
