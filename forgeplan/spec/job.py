"""What did a plan file resolve to, in one view (plan, profile, sweep cell)?"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum
from typing import Any

from attrs import field, frozen

from forgeplan.diagnostics.span import NOWHERE, Span
from forgeplan.spec.plan import Plan
from forgeplan.spec.provenance import Leaf


class _Marker(Enum):
    ABSENT = "absent"


ABSENT = _Marker.ABSENT
"""In place of a value, for `Job.vary`: what is written at the path is taken out, as by `delete`."""


@frozen
class PlanCheck:
    """An `assert` or `warn` of the plan, evaluated: `operands` are (text, value as a person reads it)."""

    holds: bool
    is_warning: bool
    text: str
    otherwise: str
    operands: tuple[tuple[str, str], ...]
    leaf: Leaf


@frozen
class Job:
    """The resolved, typed content of a plan file.

    `leaves` has every field below the plan by its path (`model.heads`, `apply.recompute.mode`, `sources.web.path`,
    `eval.held_out.every`); lists and maps of plain values are one leaf, blocks and components are not leaves except
    that a component also has one at its own path, whose value is the component's name (`optimizer` → "adamw").
    `blocks` has the structured object of every record, component, map or list of components all of whose parts are
    valid; a part that was rejected is absent from both (its fault is already reported).
    `plan` is the whole, or None if any part was rejected. `derived` has the derived values that could be computed.
    """

    name: str
    """run.name: plan[@profile][/cell]."""
    plan_name: str
    file: str
    project: str
    leaves: Mapping[str, Leaf]
    blocks: Mapping[str, Any]
    plan: Plan | None
    derived: Mapping[str, Any]
    checks: tuple[PlanCheck, ...]
    sources: Mapping[str, str]
    """sha256 of every file that took part, by name."""
    vary: Callable[[Mapping[str, Any]], Job] = field(eq=False, repr=False)
    """The same job with other final values (or `ABSENT`) at some paths, as if written on the command line; the rest is
    recomputed. A path stands behind those that it is below."""
    place: Span = NOWHERE
    """Of the plan's name, for what no smaller place stands for."""
    is_damaged: bool = False
    """Whether a statement of the plan, of a base or of the profile was not understood: what seems missing may be it."""
    bare: Callable[[str], tuple[Mapping[str, Leaf], Any]] = field(default=lambda name: ({}, None), eq=False, repr=False)
    """The leaves below `apply.<name>` and the object of a transform that `apply` leaves out, every option at its
    default; the object is None where a value that a default reads was rejected."""
