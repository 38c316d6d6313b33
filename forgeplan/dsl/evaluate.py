"""What is the value of an expression? Evaluated once, when it is read."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any, ClassVar

from forgeplan.diagnostics.codes import code
from forgeplan.diagnostics.span import Span
from forgeplan.diagnostics.suggest import did_you_mean, nearest
from forgeplan.dsl import functions, operators, syntax
from forgeplan.dsl.bounds import MAX_OPERATIONS, TOO_LARGE, OutOfBounds, check_items, check_text
from forgeplan.dsl.faults import UNKNOWN_ON_COMMAND_LINE
from forgeplan.dsl.names import component_named, not_a_member, not_in_map, unknown_name
from forgeplan.dsl.operators import Undefined
from forgeplan.dsl.references import POISON, UNDEFINED, References
from forgeplan.dsl.scope import (
    ModuleBinding,
    Scope,
    ValueBinding,
)
from forgeplan.dsl.shapes import Given, OnCommandLine, RecordShape, expand, takes_text
from forgeplan.dsl.units import UNITS, show_amount
from forgeplan.dsl.values import Poison, Range, RecordLike, Symbol, Text, Value, kind_of, show, whole_if_possible
from forgeplan.dsl.vocabulary import alternatives, members, schema_words
from forgeplan.spec import types as t
from forgeplan.spec.quantity import NUMBER, Quantity
from forgeplan.spec.registry import kinds_of

UNKNOWN_UNIT = code("FP0309", "a dimensioned field carries a unit, and the unit is known")


class Evaluator(References):
    """Values of one view of one plan, or (with `plan` None) the constants of the files themselves."""

    # expressions ------------------------------------------------------------------------------------------------------

    def evaluate(self, expr: syntax.Expr, scope: Scope, expected: t.FieldType | None = None) -> Value:
        """The value of an expression; a bare word may be a member or component that `expected` takes. Raises Poison."""
        self._operations += 1
        if self._operations > MAX_OPERATIONS:
            if self._operations == MAX_OPERATIONS + 1:
                self.report(TOO_LARGE.at(expr.span, f"evaluation takes more than {MAX_OPERATIONS:,} operations"))
            raise Poison
        return self._methods[type(expr)](self, expr, scope, expected)  # type: ignore[no-any-return]

    def evaluate_all(
        self, exprs: tuple[syntax.Expr, ...], scope: Scope, expected: t.FieldType | None = None
    ) -> list[Value]:
        """Values of independent expressions: the faults of all are reported. Raises Poison if any had one."""
        values: list[Value] = []
        poisoned = False
        for expr in exprs:
            try:
                values.append(self.evaluate(expr, scope, expected))
            except Poison:
                poisoned = True
        if poisoned:
            raise Poison
        return values

    def branch(self, expr: syntax.Conditional, scope: Scope) -> syntax.Expr:
        """The branch that a conditional takes. Raises Poison."""
        return expr.then if self._truth(self.evaluate(expr.condition, scope), expr.condition.span) else expr.otherwise

    def comprehension_items(self, expr: syntax.Comprehension, scope: Scope) -> Iterator[tuple[syntax.Expr, Scope]]:
        """The element with the scope of each round. Raises Poison."""
        for item in self.items(self.evaluate(expr.iterable, scope), expr.iterable.span):
            inner = scope.inside()
            inner.names[expr.variable.text] = ValueBinding(expr.variable.text, expr.variable.span, item)
            keep = expr.condition is None or self._truth(self.evaluate(expr.condition, inner), expr.condition.span)
            if keep:
                yield expr.element, inner

    def items(self, value: Value, span: Span) -> list[Value]:
        """The items of a list or of a range of whole numbers. Raises Poison."""
        if isinstance(value, tuple):
            return list(value)
        if isinstance(value, Range):
            low, high = value.low.amount, value.high.amount
            if isinstance(low, int) and isinstance(high, int):
                counted: list[Value] = self._guarded(span, lambda: _count(low, high, value.low))
                return counted
            raise self.fault(
                UNDEFINED.at(span, f"the range {show(value)} does not count from whole number to whole number")
            )
        if isinstance(value, RecordLike):
            return [Symbol(name) for name in value.names()]
        raise self.fault(UNDEFINED.at(span, f"a list or a range is wanted here, not {kind_of(value)}"))

    def _guarded(self, span: Span, compute: Callable[[], Any]) -> Any:
        """The result of an operation, its refusal reported at `span`."""
        try:
            return compute()
        except Undefined as reason:
            raise self.fault(UNDEFINED.at(span, str(reason), help=reason.help or ())) from None
        except OutOfBounds as reason:
            raise self.fault(TOO_LARGE.at(span, f"`{_excerpt(self.text(span))}`: {reason}")) from None

    def _truth(self, value: Value, span: Span) -> bool:
        if isinstance(value, bool):
            return value
        raise self.fault(UNDEFINED.at(span, f"a condition is true or false, not {kind_of(value)}"))

    def _error(self, expr: syntax.Expr, scope: Scope, expected: t.FieldType | None) -> Value:
        raise Poison

    def _on_command_line(self, expr: OnCommandLine, scope: Scope, expected: t.FieldType | None) -> Value:
        if takes_text(expected) and not (isinstance(expr.parsed, syntax.Text) and not expr.diagnostics):
            return Text(expr.text, expr.folder)
        if not expr.text.strip():
            raise self.fault(UNKNOWN_ON_COMMAND_LINE.at(expr.span, "`--set` gives no value here"))
        for diagnostic in expr.diagnostics:
            self.report(diagnostic)
        return self.evaluate(expr.parsed, scope, expected)

    def _given(self, expr: Given, scope: Scope, expected: t.FieldType | None) -> Value:
        return expr.value  # type: ignore[no-any-return]

    def _number(self, expr: syntax.Number, scope: Scope, expected: t.FieldType | None) -> Value:
        if expr.unit is None:
            return Quantity(expr.amount, NUMBER)
        unit = UNITS.get(expr.unit)
        if unit is None:
            meant = nearest(expr.unit, UNITS)
            help = (
                did_you_mean(meant)
                if meant
                else "counted things are tokens, sequences, steps, runs; sizes GiB, GB; times s, min, h"
            )
            raise self.fault(UNKNOWN_UNIT.at(expr.unit_span or expr.span, f"`{expr.unit}` is no unit", help=help))
        factor, dimension = unit
        return Quantity(whole_if_possible(expr.amount * factor), dimension)

    def _constant_word(self, expr: syntax.Constant, scope: Scope, expected: t.FieldType | None) -> Value:
        return expr.value

    def _text(self, expr: syntax.Text, scope: Scope, expected: t.FieldType | None) -> Value:
        if not expr.parts:
            return Text("", scope.folder)
        values = iter(self.evaluate_all(tuple(p for p in expr.parts if not isinstance(p, str)), scope))
        pieces: list[str] = []
        folder = scope.folder
        for number, part in enumerate(expr.parts):
            if isinstance(part, str):
                pieces.append(part)
                continue
            value = next(values)
            if number == 0 and isinstance(value, Text):
                folder = value.folder
            pieces.append(self._spelled(value, part.span))
        self._guarded(expr.span, lambda: check_text(sum(map(len, pieces))))
        return Text("".join(pieces), folder)

    def _spelled(self, value: Value, span: Span) -> str:
        """A value inside a text: numbers without unit, words bare."""
        match value:
            case str():
                return str(value)
            case bool():
                return show(value)
            case Quantity():
                return show_amount(value.amount).replace("_", "")
            case Symbol():
                return value.name
            case RecordLike() if value.tag:
                return value.tag
        raise self.fault(UNDEFINED.at(span, f"{kind_of(value)} has no spelling inside a text"))

    def _list(self, expr: syntax.ListExpr, scope: Scope, expected: t.FieldType | None) -> Value:
        return tuple(self.evaluate_all(expr.items, scope, _item_type(expected)))

    def _comprehension(self, expr: syntax.Comprehension, scope: Scope, expected: t.FieldType | None) -> Value:
        return tuple(self.evaluate(e, s, _item_type(expected)) for e, s in self.comprehension_items(expr, scope))

    def _conditional(self, expr: syntax.Conditional, scope: Scope, expected: t.FieldType | None) -> Value:
        chosen: syntax.Expr = expr
        while isinstance(chosen, syntax.Conditional):
            chosen = self.branch(chosen, scope)
        return self.evaluate(chosen, scope, expected)

    def _record(self, expr: syntax.Expr, scope: Scope, expected: t.FieldType | None) -> Value:
        shape = expand(self, expr, scope, expected)
        if not isinstance(shape, RecordShape):
            raise Poison
        return self.record(shape)

    def record(self, shape: RecordShape) -> RecordLike:
        """A record that stands in no plan."""
        from forgeplan.dsl.slots import anonymous

        return anonymous(self, shape)

    def _name(self, expr: syntax.NameRef, scope: Scope, expected: t.FieldType | None) -> Value:
        if expr.name == "self":
            record = scope.self_record()
            if record is None:
                raise self.fault(unknown_name(expr, scope, None, []))
            return record
        binding = scope.find(expr.name)
        if binding is not None:
            return self.value_of(binding, expr.span)
        word = self._word(expr, scope, expected)
        if word is not None:
            return word
        if self.plan is not None and expr.name in self.plan:
            return self.plan.read(expr)
        if kinds_of(expr.name):
            return self.record(RecordShape(expr.name, (), expr.span))
        if expr.name in schema_words():
            return Symbol(expr.name)
        if scope.may_declare(expr.name):
            raise Poison
        raise self.fault(unknown_name(expr, scope, expected, self.plan.names() if self.plan else []))

    def _word(self, expr: syntax.NameRef, scope: Scope, expected: t.FieldType | None) -> Value:
        """The member, component or entry that the field takes under this name; None if it takes no words."""
        if expected is None:
            return None
        words = False
        for a in alternatives(expected):
            if isinstance(a, t.OneOf):
                if expr.name in a.members:
                    return Symbol(expr.name)
                words = True
            elif isinstance(a, t.NameIn) and self.plan is not None:
                return self._entry(expr, a.map, scope)
        tag = component_named(self, expr, scope, expected)
        if tag is not None:
            return self.record(RecordShape(tag, (), expr.span))
        is_other = (self.plan is not None and expr.name in self.plan) or kinds_of(expr.name)
        return Symbol(expr.name) if words and not is_other else None

    def _entry(self, expr: syntax.NameRef, map: str, scope: Scope) -> Value:
        entries = self.plan.entries(map) if self.plan else None
        if entries is None:
            raise Poison
        if expr.name in entries:
            return Symbol(expr.name)
        raise self.fault(not_in_map(expr, map, entries, scope, self.plan.names() if self.plan else []))

    def _member(self, expr: syntax.Member, scope: Scope, expected: t.FieldType | None) -> Value:
        names = [expr.name]
        base: syntax.Expr = expr.base
        while isinstance(base, syntax.Member):
            names.append(base.name)
            base = base.base
        names.reverse()
        module = scope.find(base.name) if isinstance(base, syntax.NameRef) else None
        if isinstance(module, ModuleBinding):
            value = self.value_of(self.exported(module, names[0]), names[0].span)
            names = names[1:]
        else:
            value = self.evaluate(base, scope)
        for name in names:
            if not isinstance(value, RecordLike):
                raise self.fault(UNDEFINED.at(name.span, f"{kind_of(value)} has no member `{name.text}`"))
            value = value.member(name)
        return value

    def _index(self, expr: syntax.Index, scope: Scope, expected: t.FieldType | None) -> Value:
        base, index = self.evaluate_all((expr.base, expr.index), scope)
        if not isinstance(base, tuple):
            raise self.fault(UNDEFINED.at(expr.base.span, f"only a list has items by number, not {kind_of(base)}"))
        if not (isinstance(index, Quantity) and index.dimension == NUMBER and isinstance(index.amount, int)):
            raise self.fault(UNDEFINED.at(expr.index.span, f"an index is a plain whole number, not {kind_of(index)}"))
        if not -len(base) <= index.amount < len(base):
            message = f"there is no item {show(index)} in a list of {len(base)}; the first is 0"
            raise self.fault(UNDEFINED.at(expr.index.span, message))
        return base[index.amount]

    def _call(self, expr: syntax.Call, scope: Scope, expected: t.FieldType | None) -> Value:
        name = expr.function.name if isinstance(expr.function, syntax.NameRef) else ""
        if name not in functions.FUNCTIONS:
            known = ", ".join(f"`{f}`" for f in functions.FUNCTIONS)
            text = self.text(expr.function.span)
            meant = nearest(text, functions.FUNCTIONS)
            help = [did_you_mean(meant), f"functions are {known}"] if meant else f"functions are {known}"
            raise self.fault(UNDEFINED.at(expr.function.span, f"`{text}` is no function", help=help))
        arguments = self.evaluate_all(expr.arguments, scope)
        return self._guarded(expr.span, lambda: functions.call(name, arguments))  # type: ignore[no-any-return]

    def _unary(self, expr: syntax.Unary, scope: Scope, expected: t.FieldType | None) -> Value:
        chain = [expr]
        while isinstance(chain[-1].operand, syntax.Unary):
            chain.append(chain[-1].operand)
        value = self.evaluate(chain[-1].operand, scope)
        for node in reversed(chain):
            if node.operator == "not":
                value = not self._truth(value, node.operand.span)
            elif node.operator == "-" or not isinstance(value, Quantity):
                value = self._guarded(node.span, lambda v=value: operators.negate(v))  # type: ignore[misc]
        return value

    def _binary(self, expr: syntax.Binary, scope: Scope, expected: t.FieldType | None) -> Value:
        chain = [expr]
        while isinstance(chain[-1].left, syntax.Binary):
            chain.append(chain[-1].left)
        left = chain[-1].left
        bare = chain[-1].operator == "in" and isinstance(left, syntax.NameRef) and scope.find(left.name) is None
        value: Any = POISON if bare else self._attempt(left, scope)
        for node in reversed(chain):
            if node.operator in ("and", "or"):
                value = self._logic(node, value, scope)
            elif node.operator == "in":
                value = self._contains(node, value, scope)
            else:
                right = self._attempt(node.right, scope)
                value = POISON if POISON in (value, right) else self._apply(node, value, right)
        if value is POISON:
            raise Poison
        return value  # type: ignore[no-any-return]

    def _attempt(self, expr: syntax.Expr, scope: Scope) -> Any:
        try:
            return self.evaluate(expr, scope)
        except Poison:
            return POISON

    def _apply(self, node: syntax.Binary, left: Value, right: Value) -> Any:
        try:
            return operators.binary(node.operator, left, right)
        except Undefined as reason:
            self.report(UNDEFINED.at(node.span, str(reason), help=reason.help or ()))
        except OutOfBounds as reason:
            self.report(TOO_LARGE.at(node.span, f"`{_excerpt(self.text(node.span))}`: {reason}"))
        return POISON

    def _logic(self, node: syntax.Binary, left: Any, scope: Scope) -> Any:
        if left is POISON:
            return POISON
        if self._truth(left, node.left.span) == (node.operator == "or"):
            return node.operator == "or"
        return self._truth(self.evaluate(node.right, scope), node.right.span)

    def _contains(self, node: syntax.Binary, left: Any, scope: Scope) -> Any:
        """`item in container`; a bare word may name an entry of the container, such as a source or a transform."""
        right = self.evaluate(node.right, scope, self.type_of(node.left))
        if isinstance(node.left, syntax.NameRef) and scope.find(node.left.name) is None:
            is_entry = isinstance(right, RecordLike)
            left = Symbol(node.left.name) if is_entry else self._attempt(node.left, scope)
        if left is POISON:
            return POISON
        return self._guarded(node.span, lambda: operators.contains(left, right))

    def _comparison(self, expr: syntax.Comparison, scope: Scope, expected: t.FieldType | None) -> Value:
        types = [self.type_of(operand) for operand in expr.operands]
        known = next((type_ for type_ in types if type_ is not None and members(type_)), None)
        values: list[Value] = []
        poisoned = False
        for operand, type_ in zip(expr.operands, types, strict=True):
            try:
                value = self.evaluate(operand, scope, known if type_ is None else None)
                if (
                    type_ is None
                    and isinstance(value, Symbol)
                    and known is not None
                    and value.name not in members(known)
                ):
                    raise self.fault(not_a_member(self.text(expr.operands[0].span), known, value.name, operand.span))
                values.append(value)
            except Poison:
                poisoned = True
        if poisoned:
            raise Poison
        pairs = zip(pairwise(values), expr.operators, strict=True)
        return self._guarded(expr.span, lambda: all(operators.compare(o, a, b) for (a, b), o in pairs))  # type: ignore[no-any-return]

    def type_of(self, expr: syntax.Expr) -> t.FieldType | None:
        """The type of the field that a full path names, if it is one."""
        names: list[str] = []
        while isinstance(expr, syntax.Member):
            names.append(expr.name.text)
            expr = expr.base
        if self.plan is None or not isinstance(expr, syntax.NameRef):
            return None
        return self.plan.type_at([expr.name, *reversed(names)])

    _methods: ClassVar[dict[type, Callable[..., Any]]] = {
        syntax.ErrorExpr: _error,
        syntax.Number: _number,
        syntax.Text: _text,
        syntax.Constant: _constant_word,
        syntax.NameRef: _name,
        syntax.Member: _member,
        syntax.Index: _index,
        syntax.Call: _call,
        syntax.Unary: _unary,
        syntax.Binary: _binary,
        syntax.Comparison: _comparison,
        syntax.Conditional: _conditional,
        syntax.ListExpr: _list,
        syntax.Comprehension: _comprehension,
        syntax.Record: _record,
        syntax.Amend: _record,
        Given: _given,
        OnCommandLine: _on_command_line,
    }


def _item_type(expected: t.FieldType | None) -> t.FieldType | None:
    for a in alternatives(expected) if expected is not None else ():
        if isinstance(a, t.ListOf):
            return a.item
    return expected


def _count(low: int, high: int, like: Quantity) -> list[Value]:
    check_items(high - low + 1)
    return [Quantity(n, like.dimension) for n in range(low, high + 1)]


def _excerpt(text: str, limit: int = 40) -> str:
    text = " ".join(text.split())
    return text if len(text) <= limit else text[: limit - 1] + "…"
