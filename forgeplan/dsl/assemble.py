"""How do the parts of a view become a Job, with provenance for every value?"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from forgeplan.diagnostics.span import NOWHERE
from forgeplan.dsl import syntax
from forgeplan.dsl.checks import check
from forgeplan.dsl.leaves import origins
from forgeplan.dsl.scope import LetBinding
from forgeplan.dsl.slots import Slot
from forgeplan.dsl.values import Poison
from forgeplan.dsl.view import View
from forgeplan.dsl.vocabulary import structural
from forgeplan.spec import types as t
from forgeplan.spec.job import Job
from forgeplan.spec.plan import Plan
from forgeplan.spec.provenance import Leaf


def assemble(
    view: View, file: str, project: str, hashes: Mapping[str, str], vary: Callable[[Mapping[str, Any]], Job]
) -> Job:
    """Evaluate everything in a view. Faults go to `view.diagnostics`; what is rejected is absent from the job."""
    leaves: dict[str, Leaf] = {}
    blocks: dict[str, Any] = {}
    plan: Plan | None = None
    try:
        for child in view.root.open().children.values():
            _walk(child, leaves, blocks)
        plan = view.root.structured()
    except Poison:
        pass
    _read_constants(view)
    derived = {path: value for path in view.derived if (value := _derived(view, path, leaves)) is not None}
    checks = tuple(done for item, scope, layer in view.checks if (done := check(view, item, scope, layer)) is not None)
    stack = view.stack
    return Job(
        stack.name,
        stack.plan.name.text,
        file,
        project,
        leaves,
        blocks,
        plan,
        derived,
        checks,
        hashes,
        vary,
        stack.plan.name.span,
        view.is_damaged,
        lambda name: _bare(view, name),
    )


def _bare(view: View, name: str) -> tuple[Mapping[str, Leaf], Any]:
    """The leaves and the object that a transform would have if `apply` named it without options."""
    leaves: dict[str, Leaf] = {}
    blocks: dict[str, Any] = {}
    with suppress(Poison):
        apply = view.root.open().children["apply"]
        named = apply.implied(syntax.NameRef(name, span=NOWHERE))
        slot = Slot(view.ev, f"apply.{name}", t.Component("operation"), None, apply, [named])
        _walk(slot, leaves, blocks)
    return leaves, blocks.get(f"apply.{name}")


def _read_constants(view: View) -> None:
    """Evaluate the `let`s of all bodies, so that their faults show even if nobody reads them."""
    for scope in view.ev.scopes:
        for binding in scope.names.values():
            if isinstance(binding, LetBinding):
                with suppress(Poison):
                    view.ev.value_of(binding, binding.span)


def _derived(view: View, path: str, leaves: Mapping[str, Leaf]) -> Any:
    """A derived value that is no field; None if it cannot be computed."""
    if path in leaves or view.field_at(path):
        return None
    try:
        return view.derived_python(path)
    except Poison:
        return None


def _walk(slot: Slot, leaves: dict[str, Leaf], blocks: dict[str, Any]) -> None:
    try:
        value = slot.structured()
    except Poison:
        if slot.structure is None:
            return
        value = None
        poisoned = True
    else:
        poisoned = False
    if slot.structure is None:
        leaves[slot.path] = Leaf(value, origins(slot))
        return
    try:
        opened = slot.open()
    except Poison:
        return
    if opened.is_none:
        leaves[slot.path] = Leaf(None, origins(slot))
        return
    if not poisoned:
        blocks[slot.path] = value
    if isinstance(slot.structure, t.MapOf) and structural(slot.structure.value) is None:
        if not poisoned:
            leaves[slot.path] = Leaf(value, origins(slot))
        return
    if opened.tag is not None:
        leaves[slot.path] = Leaf(opened.tag, origins(slot))
    if isinstance(slot.structure, t.ListOf):
        leaves[slot.path] = Leaf(tuple(c.component for c in opened.children.values()), origins(slot))
    for child in opened.children.values():
        _walk(child, leaves, blocks)
