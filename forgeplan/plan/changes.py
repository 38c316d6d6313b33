"""What is different in another plan, and may a run that has checkpoints go on with it?

Every field of the plan language says what another value means for such a run. What alters the function that is trained,
or the order of its data, makes a new run: going on would train neither the old plan nor the new one. A resumed run and
`forgeplan diff` judge by this.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from enum import Enum
from fractions import Fraction
from typing import Any

import attrs
from attrs import field, frozen

from forgeplan.plan.execution_plan import ExecutionPlan
from forgeplan.plan.job_codec import unit_name
from forgeplan.plan.operations import Operation
from forgeplan.spec import types as t
from forgeplan.spec.plan import Plan
from forgeplan.spec.quantity import SEQUENCES, TOKENS, Quantity
from forgeplan.spec.setting import Change, attribute_name, settings_of

_UNWRITTEN = ("computed", "schema default")


class _Marker(Enum):
    ABSENT = "nothing"


ABSENT = _Marker.ABSENT
"""In place of a value, on the side that does not have the field."""


@frozen
class Difference:
    """One field of the plan, by its path, with its value then and now."""

    path: str
    old: Any
    new: Any
    change: Change
    type: t.FieldType | None = field(default=None, eq=False)
    follows: bool = False
    """Whether nobody wrote the value, then or now: it follows from others that differ."""

    @property
    def text(self) -> str:
        return f"{self.path}: {_name(self.old)} → {_name(self.new)}"


def differences(then: ExecutionPlan, now: ExecutionPlan) -> list[Difference]:
    """Every field whose value differs, sorted by path. A field that only one side has counts unless it is `none`.

    An option in `apply` counts if the step of the program that it is for differs: `apply` may also leave out what is
    so anyway.
    """
    same = _same_steps(then, now)
    found = []
    for one in field_differences(then.job, now.job):
        first, _, rest = one.path.partition(".")
        if first != "apply" or rest.partition(".")[0] not in same:
            follows = all(_is_unwritten(plan.provenance.get(one.path, ())) for plan in (then, now))
            found.append(attrs.evolve(one, follows=follows))
    return found


def field_differences(then: Plan, now: Plan) -> list[Difference]:
    """The same of two jobs, whatever program they became. What a component or list entry that only one side has brings
    with it is told by its name, but for fields that weigh more."""
    before, after = (dict(_leaves(_global_in_tokens(job), "", Change.NEW_RUN, None)) for job in (then, now))
    found: dict[str, Difference] = {}
    for path in sorted(before.keys() | after.keys()):
        leaf = after[path] if path in after else before[path]
        old, new = (side[path].value if path in side else ABSENT for side in (before, after))
        is_nothing = all(value in (None, ABSENT) for value in (old, new))
        one = Difference(path, old, new, leaf.change, leaf.type)
        if old != new and not is_nothing and not _told_above(one, found):
            found[path] = one
    return list(found.values())


def strongest(found: Iterable[Difference]) -> Change | None:
    """The class of all differences together."""
    return max((one.change for one in found), key=lambda change: change.strength, default=None)


def steps_of(plan: ExecutionPlan) -> dict[str, dict[str, Any]]:
    """The program: the options of every operation by its name, in order; who put it there is left out."""
    return {operation.name: _options(operation) for operation in plan.program}


@frozen
class _Leaf:
    value: Any
    change: Change
    type: t.FieldType | None


def _leaves(value: Any, path: str, change: Change, type_: t.FieldType | None) -> Iterator[tuple[str, _Leaf]]:
    """Every field below a value by its path; the class of a component's name is that of its field."""
    if _is_block(value):
        if hasattr(value, "tag"):
            yield path, _Leaf(value.tag, change, None)
        block: type = type(value)
        for name, setting in settings_of(block).items():
            inner = getattr(value, attribute_name(name, block))
            yield from _leaves(inner, f"{path}.{name}".lstrip("."), setting.change, setting.type)
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield from _leaves(inner, f"{path}.{key}", change, None)
    elif isinstance(value, tuple) and all(_is_block(item) for item in value):
        for item in value:
            yield from _leaves(item, f"{path}.{item.tag}", change, None)
    else:
        yield path, _Leaf(value, change, type_)


def _told_above(one: Difference, found: Mapping[str, Difference]) -> bool:
    """Whether a field is there, or gone, with a component whose name says so."""
    above = one.path if ABSENT in (one.old, one.new) else ""
    while "." in above:
        above = above.rpartition(".")[0]
        if above in found:
            return one.change.strength <= found[above].change.strength
    return False


def _is_block(value: Any) -> bool:
    return attrs.has(type(value)) and not isinstance(value, Quantity)


def _same_steps(then: ExecutionPlan, now: ExecutionPlan) -> set[str]:
    """Transforms that both programs have with the same options, or both lack."""
    before, after = steps_of(then), steps_of(now)
    named = {item.tag for plan in (then, now) for item in plan.job.apply}
    return {name for name in named if before.get(name) == after.get(name)}


def _options(operation: Operation) -> dict[str, Any]:
    return {name: value for name, value in attrs.asdict(operation).items() if name != "placed_by"}


def _is_unwritten(layers: tuple[str, ...]) -> bool:
    """Whether the layer in force is the schema's; a plan that says nothing of a field may have been told it."""
    return bool(layers) and layers[0].startswith(_UNWRITTEN)


def _global_in_tokens(job: Plan) -> Plan:
    """A batch is the same whether it is written in sequences or in tokens."""
    size = job.batch.global_
    if size.dimension != SEQUENCES:
        return job
    return attrs.evolve(job, batch=attrs.evolve(job.batch, global_=Quantity(size.amount * job.batch.length, TOKENS)))


def _name(value: Any) -> str:
    """A value as the plan language writes it, nearly; exact, so that no two that differ look the same."""
    if value is ABSENT:
        return "nothing"
    if value is None:
        return "none"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, Quantity):
        unit = unit_name(value.dimension)
        return f"{_name(value.amount)}{'' if unit == 'number' else f' {unit}'}"
    if isinstance(value, Fraction):
        short = f"{float(value):.10g}"
        return short if Fraction(short) == value else f"{value.numerator}/{value.denominator}"
    if isinstance(value, tuple):
        return f"[{', '.join(map(_name, value))}]"
    return str(value)
