"""Do two execution plans mean the same, and if not: what differs, what follows, and may a run go on across it?"""

from __future__ import annotations

from typing import Any

from attrs import field, frozen

from forgeplan.plan.changes import ABSENT, Difference, differences, steps_of, strongest
from forgeplan.plan.execution_plan import ExecutionPlan
from forgeplan.plan.job_codec import encode
from forgeplan.spec.setting import Change

FORMAT_VERSION = 1


@frozen
class Step:
    """One operation of the program. `options` has old and new of each that differs; on one side only, all are new."""

    name: str
    what: str
    """added | removed | changed | moved."""
    options: dict[str, tuple[Any, Any]] = field(factory=dict)


@frozen
class Consequence:
    """A figure that the compiler made of either plan; `unit` is "bytes" or nothing."""

    name: str
    old: int | None
    new: int | None
    unit: str = ""


@frozen
class Diff:
    """From `a` to `b`. `changes` begin with what weighs most."""

    a: ExecutionPlan
    b: ExecutionPlan
    changes: tuple[Difference, ...]
    program: tuple[Step, ...]
    consequences: tuple[Consequence, ...]

    @property
    def is_equal(self) -> bool:
        """Whether both train the same in the same way. Output paths may differ."""
        return self.a.meaning == self.b.meaning

    @property
    def change(self) -> Change:
        """The class of everything together; a program that differs by itself is another layout of the same state."""
        by_itself = Change.RESHARD if self.program else Change.COSMETIC
        return strongest(self.changes) or by_itself

    @property
    def resumes(self) -> bool:
        """Whether a run of `b` goes on from a checkpoint of `a`, as far as the plans tell (FP1016)."""
        return self.change is not Change.NEW_RUN

    @property
    def reasons(self) -> tuple[str, ...]:
        """The paths that decide the class."""
        return tuple(one.path for one in self.changes if one.change is strongest(self.changes))


def diff(a: ExecutionPlan, b: ExecutionPlan) -> Diff:
    changes = sorted(differences(a, b), key=lambda one: (-one.change.strength, one.path))
    return Diff(a, b, tuple(changes), tuple(_steps(a, b)), tuple(_consequences(a, b)))


def _steps(a: ExecutionPlan, b: ExecutionPlan) -> list[Step]:
    before, after = steps_of(a), steps_of(b)
    found = [Step(name, "removed", _sides(before[name], {})) for name in before if name not in after]
    both = [name for name in after if name in before]
    moved = {name for name, other in zip(both, [n for n in before if n in after], strict=True) if name != other}
    for name, options in after.items():
        if name not in before:
            found.append(Step(name, "added", _sides({}, options)))
        elif before[name] != options:
            found.append(Step(name, "changed", _sides(before[name], options)))
        elif name in moved:
            found.append(Step(name, "moved"))
    return found


def _sides(before: dict[str, Any], after: dict[str, Any]) -> dict[str, tuple[Any, Any]]:
    names = dict.fromkeys([*before, *after])
    pairs = {name: (before.get(name, ABSENT), after.get(name, ABSENT)) for name in names}
    return {name: pair for name, pair in pairs.items() if pair[0] != pair[1]}


def _consequences(a: ExecutionPlan, b: ExecutionPlan) -> list[Consequence]:
    before, after = _figures(a), _figures(b)
    if all(plan.estimates.num_active_parameters == plan.estimates.num_parameters for plan in (a, b)):
        del after["active parameters"]
    units = {"state of a rank, at most": "bytes"}
    return [Consequence(n, before[n], after[n], units.get(n, "")) for n in after if before[n] != after[n]]


def _figures(plan: ExecutionPlan) -> dict[str, int | None]:
    made = plan.estimates
    return {
        "parameters": made.num_parameters,
        "active parameters": made.num_active_parameters,
        "FLOPs a token": made.flops_per_token,
        "processes": plan.mesh.world,
        "data ranks": plan.mesh.data_ranks,
        "tokens a step": made.tokens_per_step,
        "steps": plan.steps,
        "tokens of the run": made.counted_tokens,
        "state of a rank, at most": max((one.state_bytes for one in plan.rank_classes), default=0),
    }


def to_json(found: Diff) -> dict[str, Any]:
    """For programs: exact values as in an execution plan, `null` for `none`; a side without the field lacks the key."""
    return {
        "format_version": FORMAT_VERSION,
        "a": {"name": found.a.name, "meaning": found.a.meaning},
        "b": {"name": found.b.name, "meaning": found.b.meaning},
        "equal": found.is_equal,
        "class": found.change.value,
        "resumes": found.resumes,
        "changes": [
            {"path": one.path, "class": one.change.value, "follows": one.follows, **_pair(one.old, one.new)}
            for one in found.changes
        ],
        "program": [
            {"name": step.name, "what": step.what, "options": {k: _pair(*pair) for k, pair in step.options.items()}}
            for step in found.program
        ],
        "consequences": [
            {"name": one.name, "old": one.old, "new": one.new, **({"unit": one.unit} if one.unit else {})}
            for one in found.consequences
        ],
    }


def _pair(old: Any, new: Any) -> dict[str, Any]:
    return {side: encode(value) for side, value in (("old", old), ("new", new)) if value is not ABSENT}
