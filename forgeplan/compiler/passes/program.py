"""Which steps turn the model into what runs, in which order, and who asked for each?"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from forgeplan.compiler.facts import Facts
from forgeplan.compiler.passes.manager import Results, analysis
from forgeplan.plan.operations import OPERATIONS, Build, Fsdp, Initialise, Materialise, Operation, Recompute

Maker = Callable[[Facts, Any, str], Operation | None]


def _recompute(facts: Facts, written: Any, placed_by: str) -> Operation | None:
    return Recompute(placed_by, written.mode) if written and written.mode != "none" else None


def _fsdp(facts: Facts, written: Any, placed_by: str) -> Operation:
    precision = facts.block("precision")
    reshard = written.reshard if written else "default"
    return Fsdp(placed_by, reshard, precision.params, precision.compute, precision.reduce)


MAKERS: dict[str, Maker] = {
    "build": lambda facts, written, placed_by: Build(placed_by),
    "recompute": _recompute,
    "fsdp": _fsdp,
    "materialise": lambda facts, written, placed_by: Materialise(placed_by),
    "initialise": lambda facts, written, placed_by: Initialise(placed_by, facts["seed"].value),
}
"""For each operation, how it is made from the job; None where it is not in the program."""


@analysis("program")
def program(results: Results) -> tuple[Operation, ...]:
    """The written transforms in their order, and the others at their place."""
    facts = results.facts
    written = {item.tag: item for item in facts.block("apply")}
    order = list(written)
    for name in OPERATIONS:
        if name not in written:
            order.insert(_place(name, order), name)
    made = (MAKERS[name](facts, written.get(name), "plan" if name in written else "always") for name in order)
    return tuple(operation for operation in made if operation is not None)


def _place(name: str, order: list[str]) -> int:
    """The last place from which everything that must follow still follows; after everything that must come before."""
    follows = [i for i, other in enumerate(order) if other in OPERATIONS[name].before]
    precedes = [i + 1 for i, other in enumerate(order) if name in OPERATIONS[other].before]
    return max([min(follows, default=len(order)), *precedes])
