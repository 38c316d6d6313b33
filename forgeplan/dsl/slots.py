"""What stands at a path of a plan? Each part finds its shape and its value when it is asked for them.

A part with a shape (record, component, map, list of components) has parts of its own; any other part has a value. Both
are found on demand and kept, so that the order in which fields are written never matters.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from attrs import define, field

from forgeplan.diagnostics.span import NOWHERE, SCHEMA
from forgeplan.dsl import syntax
from forgeplan.dsl.faults import absent_entry, wrong_kind
from forgeplan.dsl.layers import SCHEMA_LAYER, Collapsed, Contribution, Group, collapse
from forgeplan.dsl.scope import Scope
from forgeplan.dsl.shapes import ListShape, RecordShape, expand, shape_of
from forgeplan.dsl.values import Poison, RecordLike, Value
from forgeplan.dsl.vocabulary import optional, structural
from forgeplan.spec import types as t
from forgeplan.spec.registry import kinds_of
from forgeplan.spec.setting import Setting

if TYPE_CHECKING:
    from forgeplan.dsl.evaluate import Evaluator

_UNKNOWN = object()
_POISON = object()


@define(eq=False)
class Opened:
    """The shape of a part. `block` is the attrs class of a record or component."""

    children: dict[str, Slot] = field(factory=dict)
    tag: str | None = None
    block: type | None = None
    shape: RecordShape | ListShape | None = None
    is_none: bool = False
    is_damaged: bool = False
    """Whether a statement in it could not be read, so that there may be more than is known."""
    value: Value = None
    """Of a part without schema that is a plain value."""
    rejected: set[str] = field(factory=set)
    """Names that were written here and refused."""


class Slot(RecordLike):
    """A part of a plan, or of a record that stands in no plan (then `type` may be None: anything goes)."""

    def __init__(
        self,
        ev: Evaluator,
        path: str,
        type: t.FieldType | None,
        setting: Setting | None = None,
        parent: Slot | None = None,
        contributions: list[Contribution] | None = None,
        superseded: list[Contribution] | None = None,
    ) -> None:
        self.ev = ev
        self.path = path
        self.type = type
        self.setting = setting
        self.parent = parent
        self.found: Collapsed = collapse(contributions or ())
        self.superseded = superseded or []
        self.structure = structural(type) if type is not None else None
        self.broken = False
        """Whether the part is missing or contradictory, which is already reported."""
        self.computed = False
        """Whether the value in force comes from a derived value's function."""
        self.component = ""
        """The component's name, as soon as it is known."""
        self._opened: Opened | object = _UNKNOWN
        self._result: Any = _UNKNOWN

    # shape ------------------------------------------------------------------------------------------------------------

    def open(self) -> Opened:
        """The shape and the parts. Raises Poison."""
        if self._opened is _UNKNOWN:
            key = ("shape", self)
            self.ev.enter(key, f"`{self.path}`", self.ev.at)
            opened: Opened | object = _POISON
            try:
                opened = self._open()
            finally:
                self._opened = opened
                self.ev.leave(key)
        if self._opened is _POISON:
            raise Poison
        return self._opened  # type: ignore[return-value]

    def _open(self) -> Opened:
        from forgeplan.dsl import parts

        parts.check_rivals(self)
        whole = self.whole()
        expr, scope = self.read_in(whole)
        shape = expand(self.ev, expr, scope, self.type)
        if shape is None:
            value = self.ev.evaluate(expr, scope, self.type)
            shape = shape_of(value, expr.span, scope)
            if shape is None:
                return self._plain(value, whole)
        if isinstance(shape, RecordShape):
            return parts.open_record(self, shape, whole)
        return parts.open_list(self, shape, whole)

    def _plain(self, value: Value, whole: Contribution) -> Opened:
        if self.type is None:
            return Opened(value=value)
        if value is None and optional(self.type):
            for c in self.found.deeper:
                self.ev.report(absent_entry(self, c))
            return Opened(is_none=True)
        raise self.ev.fault(wrong_kind(self, value, whole))

    def whole(self) -> Contribution:
        """The statement that sets the part as a whole, or the default. Raises Poison where there is neither."""
        if self.broken:
            raise Poison
        if self.found.whole is not None:
            return self.found.whole
        default = self.setting.default if self.setting else None
        if isinstance(default, str):
            return self.implied(default_expression(default))
        if self.found.deeper and isinstance(self.structure, t.Block | t.MapOf) and not self._may_be_unread():
            return self.implied(_EMPTY)
        raise Poison

    def _may_be_unread(self) -> bool:
        """Whether a statement of the record above could not be read: the whole value may stand there."""
        above = self.parent.open().shape if self.parent is not None else None
        return isinstance(above, RecordShape) and above.damaged

    def read_in(self, c: Contribution) -> tuple[syntax.Expr, Scope]:
        """The expression of a statement with its scope, in which `self` is the record that has the field."""
        scope = c.scope.inside(self.parent) if c.size > 1 and self.parent is not None else c.scope
        return c.expr or syntax.ErrorExpr(span=c.span), scope

    def implied(self, expr: syntax.Expr) -> Contribution:
        """A contribution that the schema makes."""
        scope = Scope(owner=self.parent)
        return Contribution((), "set", expr, scope, Group(SCHEMA_LAYER), NOWHERE, None, 0)

    def reusable_shape(self) -> RecordShape | ListShape | None:
        """The shape for a record elsewhere that refers to this one."""
        opened = self.open()
        if isinstance(opened.shape, RecordShape):
            deeper = tuple(self.found.deeper)
            return RecordShape(opened.shape.tag, opened.shape.pieces, opened.shape.span, opened.shape.reaching + deeper)
        return opened.shape

    shape = reusable_shape

    # value ------------------------------------------------------------------------------------------------------------

    def structured(self) -> Any:
        """The Python value that the field's type names. Raises Poison."""
        if self._result is _UNKNOWN:
            key = ("value", self)
            self.ev.enter(key, f"`{self.path}`", self.ev.at)
            result: Any = _POISON
            try:
                result = self._structured()
            finally:
                self._result = result
                self.ev.leave(key)
        if self._result is _POISON:
            raise Poison
        return self._result

    def _structured(self) -> Any:
        from forgeplan.dsl import leaves, parts

        if self.structure is None:
            return leaves.leaf(self)
        return parts.build(self)

    def value(self) -> Value:
        """The value in the language: a record with parts, or a plain value. Raises Poison."""
        from forgeplan.dsl.leaves import as_value

        if self.structure is None and self.type is not None:
            return as_value(self.structured(), self.type)
        opened = self.open()
        if opened.is_none:
            return None
        return opened.value if self.type is None and opened.shape is None else self

    # record -----------------------------------------------------------------------------------------------------------

    @property
    def tag(self) -> str | None:
        return self.open().tag

    def names(self) -> list[str]:
        return list(self.open().children)

    def member(self, name: syntax.Name) -> Value:
        from forgeplan.dsl.names import unknown_member

        opened = self.open()
        self.ev.at = name.span
        child = opened.children.get(name.text)
        if child is not None:
            return child.value()
        if name.text in opened.rejected or opened.is_damaged:
            raise Poison
        below = f"{self.path}.{name.text}" if self.path else name.text
        plan = self.ev.plan
        if plan is not None and self.parent_plan() and plan.is_derived(below):
            return plan.derived_value(below)
        known = [*opened.children, *(plan.derived_below(self.path) if plan is not None else ())]
        raise self.ev.fault(unknown_member(self.path or self.tag or "the record", name, known))

    def parent_plan(self) -> bool:
        """Whether this is a part of the plan, not of a record that stands for itself."""
        slot = self
        while slot.parent is not None:
            slot = slot.parent
        return slot.path == "" and slot.type is not None


_EMPTY = syntax.Record((), span=NOWHERE)


def anonymous(ev: Evaluator, shape: RecordShape) -> Slot:
    """A record that stands in no plan."""
    from forgeplan.dsl.shapes import Given

    kinds = kinds_of(shape.tag) if shape.tag else []
    slot = Slot(ev, shape.tag or "record", t.Component(kinds[0]) if len(kinds) == 1 else None)
    value = Shaped(shape)
    slot.found.whole = Contribution((), "set", Given(value, span=shape.span), Scope(), Group(""), shape.span, None, 0)
    return slot


class Shaped(RecordLike):
    """A shape where a value is expected."""

    def __init__(self, shape: RecordShape) -> None:
        self._shape = shape

    def shape(self) -> RecordShape:
        return self._shape

    @property
    def tag(self) -> str | None:
        return self._shape.tag

    def member(self, name: syntax.Name) -> Value:
        raise Poison

    def names(self) -> list[str]:
        return []


_defaults: dict[str, syntax.Expr] = {}


def default_expression(text: str) -> syntax.Expr:
    """The tree of a default that the schema states, parsed once a process."""
    from forgeplan.dsl.parser import parse_expression

    found = _defaults.get(text)
    if found is None:
        found, diagnostics = parse_expression(text, SCHEMA)
        if diagnostics:
            raise ValueError(f"the schema's default {text!r} does not parse: {diagnostics[0].message}")
        _defaults[text] = found
    return found
