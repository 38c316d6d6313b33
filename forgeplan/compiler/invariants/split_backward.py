"""Does a pipeline that computes gradients of weights later go with the rest of the program?"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from attrs import frozen

from forgeplan.compiler.facts import Fact, Facts
from forgeplan.compiler.invariants.attention import uses_flex, what_asks_for_flex
from forgeplan.compiler.invariants.pipeline import schedule_of
from forgeplan.compiler.invariants.registry import Finding, invariant, legal
from forgeplan.compiler.wording import listing
from forgeplan.diagnostics.diagnostic import Label
from forgeplan.spec.operation.pp import SCHEDULES, SPLIT_BACKWARD


@invariant("FP0433", "schedules that split backward go with the rest of the program")
def split_backward_goes_with_the_rest(facts: Facts) -> Iterator[Finding]:
    schedule = schedule_of(facts)
    if schedule is None or schedule.value not in SPLIT_BACKWARD:
        return
    found = list(_in_the_way(facts))
    if not found:
        return
    alone = found[0].instead if len(found) == 1 else ()
    yield split_backward_goes_with_the_rest.at(
        f"pp.schedule = {schedule.value} with {listing((each.what for each in found), ' and ')} is not supported by "
        "this executor: gradients of weights are computed after those of activations, apart from them",
        schedule,
        *(place for each in found for place in each.places),
        facts["mesh.pp"],
        legal=(legal(facts, schedule.path, SCHEDULES), *(legal(facts, path, [value]) for path, value in alone)),
        help=[each.help for each in found if each.help],
        notes=[f"{each.what}: {each.breaks}" for each in found],
    )


@frozen
class _Obstacle:
    """What does not go with a split backward, what torch 2.13 makes of it, and where it stands."""

    what: str
    breaks: str
    places: tuple[Fact | Label, ...]
    instead: tuple[tuple[str, Any], ...] = ()
    """A path and a value, one of which is enough."""
    help: str = ""


def _in_the_way(facts: Facts) -> Iterator[_Obstacle]:
    if uses_flex(facts):
        breaks = "its kernel is compiled, and a compiled backward cannot be run in two parts"
        asking = tuple(what_asks_for_flex(facts))
        instead = {"batch.pack": False, "model.attention": "auto", "mesh.cp": 1}
        alone = tuple((fact.path, instead.get(fact.path)) for fact in asking if len(asking) == 1)
        yield _Obstacle("FlexAttention", breaks, asking, alone)
    if facts.get("apply.compile.backend") is not None:
        breaks = "a compiled backward cannot be run in two parts"
        place = Label(facts.place("apply.compile", "apply"), "compile")
        yield _Obstacle("compile", breaks, (place,), help="or drop `compile`")
    mode = facts.get("apply.recompute.mode")
    if mode is not None and mode.value == "selective":
        breaks = "the second part of backward finds what was kept used up"
        yield _Obstacle(f"recompute.mode = {mode.value}", breaks, (mode,), ((mode.path, "full"),))
    reshard, mesh = facts["apply.fsdp.reshard"], facts.results("mesh")
    if reshard.value not in ("default", "never", 1) and mesh.fsdp_degree * mesh.dp_replicate > 1:
        breaks = "gradients of freed parameters are wrong or missing, without an error"
        yield _Obstacle(f"fsdp.reshard = {reshard.text}", breaks, (reshard,), ((reshard.path, "never"),))
