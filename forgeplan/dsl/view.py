"""What does a plan resolve to in one view: with a profile, a sweep cell, overrides from the command line?"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import attrs
from attrs import define, field, frozen

from forgeplan.diagnostics.diagnostic import Diagnostic
from forgeplan.diagnostics.span import NOWHERE, Span
from forgeplan.dsl import syntax
from forgeplan.dsl.bindings import declare_values
from forgeplan.dsl.evaluate import Evaluator
from forgeplan.dsl.imports import PlanDecl
from forgeplan.dsl.layers import Contribution, Group, Piece
from forgeplan.dsl.names import unknown_member
from forgeplan.dsl.references import References
from forgeplan.dsl.scope import Scope
from forgeplan.dsl.shapes import Given, RecordShape
from forgeplan.dsl.slots import Shaped, Slot
from forgeplan.dsl.structure import as_value
from forgeplan.dsl.values import Poison, RecordLike, Value
from forgeplan.spec import types as t
from forgeplan.spec.derived import Derived
from forgeplan.spec.plan import Plan
from forgeplan.spec.setting import settings_of

_POISON = object()
_UNKNOWN = object()
_FIELDS = settings_of(Plan)


@frozen
class Stack:
    """What decides a view: the plan with its bases (oldest first), a profile, and what is stronger than both."""

    chain: tuple[PlanDecl, ...]
    profile: str | None = None
    cell: str | None = None
    over: tuple[Contribution, ...] = ()
    damaged: bool = False
    """Whether a base is unknown: what seems missing may be there."""

    def with_more(self, over: Iterable[Contribution]) -> Stack:
        """The same, with further statements that are stronger than all before."""
        return attrs.evolve(self, over=(*self.over, *over))

    @property
    def plan(self) -> syntax.Plan:
        return self.chain[-1].plan

    @property
    def name(self) -> str:
        """run.name."""
        name = self.plan.name.text
        name += f"@{self.profile}" if self.profile else ""
        return f"{name}/{self.cell}" if self.cell else name


@define(eq=False)
class View:
    """The parts of one plan in one view, and what its expressions can read besides their scopes."""

    stack: Stack
    files: References
    functions: Mapping[str, Derived]
    diagnostics: list[Diagnostic] = field(factory=list)
    ev: Evaluator = field(init=False)
    root: Slot = field(init=False)
    checks: list[tuple[syntax.Check, Scope, str]] = field(factory=list)
    """Each `assert` and `warn`, with its scope and the layer it stands in."""
    derived: dict[str, Derived] = field(init=False)
    _computed: dict[str, Any] = field(factory=dict)

    def __attrs_post_init__(self) -> None:
        self.ev = Evaluator(self.files.sources, self.diagnostics.append, self.files, self)
        self.ev.expects, self.ev.conform = self.files.expects, self.files.conform
        self.root = Slot(self.ev, "", t.Block(Plan))
        self.derived = {**self.functions, **_names_of(self.stack)}
        name = self.stack.plan.name.span
        shape = RecordShape(None, tuple(self._pieces()), name, self.stack.over)
        value = Given(Shaped(shape), span=name)
        self.root.found.whole = Contribution(
            (), "set", value, Scope(), Group(f"plan {self.stack.plan.name.text}"), name, None, 0
        )

    def _pieces(self) -> list[Piece]:
        plans: list[Piece] = []
        profiles: list[Piece] = []
        for decl in self.stack.chain:
            layer = f"plan {decl.plan.name.text}"
            scope = self._body_scope(decl.module.scope, decl.plan.body.items if decl.has_lets else ())
            plans.append(Piece(decl.plan.body.items, scope, Group(layer), True))
            self.checks += [(check, scope, layer) for check in decl.checks]
            for item in decl.profiles if self.stack.profile else ():
                if item.name.text == self.stack.profile:
                    profiles.append(self._profile(item, scope))
        if self.stack.damaged:
            profiles.append(Piece((syntax.ErrorItem(span=NOWHERE),), Scope(), Group("")))
        return plans + profiles

    def _profile(self, profile: syntax.Profile, around: Scope) -> Piece:
        layer = f"profile {profile.name.text}"
        items = profile.body.items
        scope = self._body_scope(around, items)
        self.checks += [(item, scope, layer) for item in items if isinstance(item, syntax.Check)]
        return Piece(items, scope, Group(layer), True)

    def _body_scope(self, around: Scope, items: Sequence[syntax.Item]) -> Scope:
        scope = around.inside(self.root)
        if items:
            declare_values(items, scope, self.diagnostics.append)
            self.ev.scopes.append(scope)
        return scope

    @property
    def is_damaged(self) -> bool:
        """Whether a statement of one of the bodies could not be read, or was refused: what seems missing may be it."""
        try:
            opened = self.root.open()
        except Poison:
            return True
        return opened.is_damaged or bool(opened.rejected)

    # what expressions can read ----------------------------------------------------------------------------------------

    def __contains__(self, name: object) -> bool:
        return name in _FIELDS or any(path.startswith(f"{name}.") for path in self.derived)

    def names(self) -> list[str]:
        return [*_FIELDS, *dict.fromkeys(p.split(".")[0] for p in self.derived if p.split(".")[0] not in _FIELDS)]

    def read(self, ref: syntax.NameRef) -> Value:
        if ref.name not in _FIELDS:
            return Namespace(self, ref.name)
        self.ev.at = ref.span
        return self.root.open().children[ref.name].value()

    def entries(self, map: str) -> list[str] | None:
        try:
            slot = self.slot(map.split("."))
            opened = slot.open() if slot is not None else None
        except Poison:
            return None
        if opened is None:
            return []
        return None if opened.is_damaged else [*opened.children, *opened.rejected]

    def type_at(self, names: list[str]) -> t.FieldType | None:
        derived = self.derived.get(".".join(names))
        try:
            slot = self.slot(names)
        except Poison:
            return None
        if slot is not None:
            return slot.type
        return derived.type if derived else None

    def slot(self, names: Sequence[str]) -> Slot | None:
        """The part at a path, None where there is none. Raises Poison where it cannot be told."""
        slot = self.root
        for name in names:
            opened = slot.open() if slot.structure is not None else None
            child = opened.children.get(name) if opened is not None else None
            if child is None:
                return None
            slot = child
        return slot

    def field_at(self, path: str) -> bool:
        """Whether a field stands at the path."""
        try:
            return self.slot(path.split(".")) is not None
        except Poison:
            return False

    # derived values ---------------------------------------------------------------------------------------------------

    def is_derived(self, path: str) -> bool:
        return path in self.derived

    def reads_of(self, path: str) -> tuple[str, ...]:
        return self.derived[path].reads if path in self.derived else ()

    def derived_below(self, path: str) -> list[str]:
        start = f"{path}." if path else ""
        return [p.removeprefix(start) for p in self.derived if p.startswith(start)]

    def derived_value(self, path: str) -> Value:
        return as_value(self.derived_python(path), self.derived[path].type)

    def derived_python(self, path: str) -> Any:
        """The value of a derived value's function; None where a fact it needs is not stated. Raises Poison."""
        found = self._computed.get(path, _UNKNOWN)
        if found is _UNKNOWN:
            derived = self.derived[path]
            key = ("derived", path)
            self.ev.enter(key, f"`{path}`", self.ev.at)
            found = _POISON
            try:
                self.ev.at = NOWHERE
                found = derived.compute(*[self.structured(read) for read in derived.reads])
            finally:
                self._computed[path] = found
                self.ev.leave(key)
        if found is _POISON:
            raise Poison
        return found

    def structured(self, path: str) -> Any:
        """The structured value at a field or derived value; None below something that is none. Raises Poison."""
        slot = self.root
        for name in path.split("."):
            opened = slot.open()
            if opened.is_none:
                return None
            child = opened.children.get(name)
            if child is None:
                break
            slot = child
        else:
            return slot.structured()
        if path in self.derived:
            return self.derived_python(path)
        raise KeyError(f"a derived value reads {path!r}, which is neither a field nor derived")


@frozen(eq=False)
class Namespace(RecordLike):
    """Derived values that stand under no block of the plan: `run.name`, `flops.per_token`."""

    view: View
    path: str

    @property
    def tag(self) -> str | None:
        return None

    def member(self, name: syntax.Name) -> Value:
        below = f"{self.path}.{name.text}"
        if below in self.view.derived:
            self.view.ev.at = name.span
            return self.view.derived_value(below)
        if any(p.startswith(f"{below}.") for p in self.view.derived):
            return Namespace(self.view, below)
        raise self.view.ev.fault(unknown_member(self.path, name, self.names()))

    def names(self) -> list[str]:
        return self.view.derived_below(self.path)


def _names_of(stack: Stack) -> dict[str, Derived]:
    plan, run = stack.plan.name.text, stack.name
    values = {
        "plan.name": (t.Text(), plan, "the plan's name"),
        "run.name": (t.Text(), run, "plan[@profile][/cell]"),
        "run.dir": (t.PathText(output=True), f"runs/{run}", "the run's folder in the project"),
    }
    return {path: Derived(path, type_, (), _always(value), doc) for path, (type_, value, doc) in values.items()}


def _always(value: str) -> Any:
    return lambda: value


def override(names: Sequence[syntax.Name], expr: syntax.Expr, scope: Scope, group: Group, span: Span) -> Contribution:
    """A statement that stands in no body, such as one of the command line."""
    return Contribution(tuple(names), "set", expr, scope, group, span, expr, len(names))
