"""May a run go on from a checkpoint with the plan that it has now, and what is different?

Every field of the plan language says what another value means for a run that has checkpoints. What alters the function
that is trained, or the order of its data, makes a new run: going on would train neither the old plan nor the new one.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import attrs
from attrs import frozen

from forgeplan.diagnostics.codes import code
from forgeplan.diagnostics.refusal import Refusal
from forgeplan.plan.execution_plan import ExecutionPlan
from forgeplan.plan.job_codec import unit_name
from forgeplan.plan.verify import read
from forgeplan.runtime.checkpoint.load import load_plan
from forgeplan.spec.plan import Plan
from forgeplan.spec.quantity import SEQUENCES, TOKENS, Quantity
from forgeplan.spec.setting import Change, attribute_name, settings_of

OTHER_PLAN = code("FP1016", "a run goes on with the plan that it was started with, but for changes that it can take")

_NAMED = 12
_ABSENT = object()


@frozen
class Difference:
    """One field of the plan, by its path, with its value then and now."""

    path: str
    text: str
    change: Change


def changes_since(checkpoint: Path, plan: ExecutionPlan) -> list[str]:
    """What has changed since the checkpoint, for a person; an empty list for the same plan.

    Raises Refusal FP1016 where a change makes a new run.
    """
    found = differences(read(load_plan(checkpoint)).job, plan.job)
    other_run = [d for d in found if d.change is Change.NEW_RUN]
    if other_run:
        raise Refusal(
            OTHER_PLAN,
            f"{checkpoint} was trained by a plan with other values; going on would train neither of the two:\n  "
            + "\n  ".join(_lines(other_run)),
            (
                f"to go on with this run, change them back; the plan it was trained with is {checkpoint / 'plan.json'}",
                "to train the changed plan, start a new run: give it another name or another `checkpoint.path`",
            ),
        )
    return ["the plan has changed since this checkpoint:", *(f"  {line}" for line in _lines(found))] if found else []


def differences(then: Plan, now: Plan) -> list[Difference]:
    """Every field whose value differs, sorted by path. A field that only one side has counts unless it is `none`."""
    before, after = (dict(_leaves(_global_in_tokens(job), "", Change.NEW_RUN)) for job in (then, now))
    found = []
    for path in sorted(before.keys() | after.keys()):
        old, change = before.get(path, (_ABSENT, Change.COSMETIC))
        new, change = after.get(path, (_ABSENT, change))
        both_none = all(value in (None, _ABSENT) for value in (old, new))
        if old != new and not both_none:
            found.append(Difference(path, f"{path}: {_name(old)} → {_name(new)}", change))
    return found


def _leaves(value: Any, path: str, change: Change) -> Iterator[tuple[str, tuple[Any, Change]]]:
    """Path, value and class of every field below a value; the class of a component's name is that of its field."""
    if _is_block(value):
        if hasattr(value, "tag"):
            yield path, (value.tag, change)
        block: type = type(value)
        for name, setting in settings_of(block).items():
            inner = getattr(value, attribute_name(name, block))
            yield from _leaves(inner, f"{path}.{name}".lstrip("."), setting.change)
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield from _leaves(inner, f"{path}.{key}", change)
    elif isinstance(value, tuple) and all(_is_block(item) for item in value):
        for item in value:
            yield from _leaves(item, f"{path}.{item.tag}", change)
    else:
        yield path, (value, change)


def _is_block(value: Any) -> bool:
    return attrs.has(type(value)) and not isinstance(value, Quantity)


def _global_in_tokens(job: Plan) -> Plan:
    """A batch is the same whether it is written in sequences or in tokens."""
    size = job.batch.global_
    if size.dimension != SEQUENCES:
        return job
    return attrs.evolve(job, batch=attrs.evolve(job.batch, global_=Quantity(size.amount * job.batch.length, TOKENS)))


def _lines(found: list[Difference]) -> list[str]:
    more = len(found) - _NAMED
    return [d.text for d in found[:_NAMED]] + ([f"and {more} more"] if more > 0 else [])


def _name(value: Any) -> str:
    """A value as the plan language writes it, nearly."""
    if value is _ABSENT:
        return "nothing"
    if value is None:
        return "none"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, Quantity):
        unit = unit_name(value.dimension)
        return f"{_name(value.amount)}{'' if unit == 'number' else f' {unit}'}"
    if isinstance(value, Fraction):
        return f"{float(value):.10g}"
    if isinstance(value, tuple):
        return f"[{', '.join(map(_name, value))}]"
    return str(value)
