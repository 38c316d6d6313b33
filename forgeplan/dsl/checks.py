"""Does an `assert`, a `warn` or an `expect` hold, and which operands decide it?"""

from __future__ import annotations

from collections.abc import Iterator

from attrs import frozen

from forgeplan.diagnostics.codes import Code, code, lint_code
from forgeplan.diagnostics.diagnostic import Diagnostic, Label
from forgeplan.diagnostics.span import COMMAND_LINE, SCHEMA
from forgeplan.dsl import syntax
from forgeplan.dsl.leaves import origins
from forgeplan.dsl.references import UNDEFINED
from forgeplan.dsl.scope import Scope
from forgeplan.dsl.values import Poison, Value, kind_of, show
from forgeplan.dsl.view import View
from forgeplan.spec.job import PlanCheck
from forgeplan.spec.provenance import Leaf, Origin
from forgeplan.spec.quantity import Quantity

DOES_NOT_HOLD = code("FP0317", "`assert` holds")
WARNS = lint_code("plan-warning", "`warn` holds")
MISSING_FACT = code("FP0903", "`assert` and `test` read only values whose facts are stated")


@frozen
class Operand:
    """A reference in a condition: its text, its value, and the place that decided it, if a file did."""

    text: str
    value: Value
    label: Label | None

    @property
    def shown(self) -> str:
        return show(self.value)


def check(view: View, item: syntax.Check, scope: Scope, layer: str) -> PlanCheck | None:
    """The outcome; a failure is reported to the view. None if the condition cannot be evaluated, which is reported.

    A `warn` about a fact that is not stated says nothing.
    """
    rule = WARNS if item.is_warning else DOES_NOT_HOLD
    word = "warn" if item.is_warning else "assert"
    try:
        operands = list(operands_of(view, item.condition, scope))
        if item.is_warning and absent_facts(item.condition, operands):
            return None
        holds = truth(view, item.condition, scope, operands)
        otherwise = str(view.ev.evaluate(item.otherwise, scope)) if item.otherwise else ""
    except Poison:
        return None
    text = " ".join(view.ev.text(item.condition.span).split())
    if not holds:
        message = f"`{word} {text}` does not hold" + (f": {otherwise}" if otherwise else "")
        view.diagnostics.append(failure(view, rule, item.condition, message, operands))
    origin = Origin(item.condition.span, layer, text)
    shown = tuple((o.text, o.shown) for o in operands)
    return PlanCheck(holds, item.is_warning, text, otherwise, shown, Leaf(holds, (origin,)))


def truth(view: View, condition: syntax.Expr, scope: Scope, operands: list[Operand]) -> bool:
    """Whether a condition holds. Raises Poison. A fact that is not stated is never a success."""
    absent = absent_facts(condition, operands)
    if absent:
        message = f"`{absent[0].text}` is not stated, so this cannot be told"
        labels = [o.label for o in absent if o.label]
        help = "state the fact in the plan, or take the check out"
        raise view.ev.fault(MISSING_FACT.at(condition.span, message, *labels, help=help))
    value = view.ev.evaluate(condition, scope)
    if not isinstance(value, bool):
        raise view.ev.fault(UNDEFINED.at(condition.span, f"a condition is true or false, not {kind_of(value)}"))
    return value


def absent_facts(condition: syntax.Expr, operands: list[Operand]) -> list[Operand]:
    """The operands of a comparison of sizes that have none."""
    of_sizes = isinstance(condition, syntax.Comparison) and any(o not in ("==", "!=") for o in condition.operators)
    return [o for o in operands if o.value is None] if of_sizes else []


def failure(view: View, rule: Code, condition: syntax.Expr, message: str, operands: list[Operand]) -> Diagnostic:
    """A condition that does not hold, with every operand's value and place."""
    values = ", ".join(f"{o.text} = {o.shown}" for o in operands)
    labels = [o.label for o in operands if o.label is not None]
    notes = () if all(o.label for o in operands) else f"here {values}"
    return rule.at(Label(condition.span, values), message, *labels, help=_bound(condition, operands), notes=notes)


def _bound(condition: syntax.Expr, operands: list[Operand]) -> str | tuple[str, ...]:
    """What a lone operand would have to be."""
    if len(operands) != 1 or not isinstance(condition, syntax.Comparison) or len(condition.operators) != 1:
        return ()
    wanted = {"==": "must be", "!=": "must not be", "<": "must be below", "<=": "may be at most", ">": "must be above"}
    operator = condition.operators[0]
    other = condition.operands[1] if not isinstance(condition.operands[1], syntax.Member | syntax.NameRef) else None
    if not isinstance(other, syntax.Number) or not isinstance(operands[0].value, Quantity):
        return ()
    return f"`{operands[0].text}` {wanted.get(operator, 'must be at least')} {_written(other)}"


def _written(number: syntax.Number) -> str:
    if number.unit is None:
        return number.spelling
    return (
        number.spelling
        + ("" if number.unit_span and number.unit_span.start == number.span.start + len(number.spelling) else " ")
        + number.unit
    )


def operands_of(view: View, expr: syntax.Expr, scope: Scope) -> Iterator[Operand]:
    """The references of a condition with their values, each once, in order. Raises Poison."""
    seen: set[str] = set()
    for reference in references(expr):
        text = " ".join(view.ev.text(reference.span).split())
        if text in seen:
            continue
        seen.add(text)
        expected = view.ev.type_of(reference)
        names = text.split(".")
        if isinstance(reference, syntax.NameRef) and scope.find(reference.name) is None and reference.name not in view:
            continue
        value = view.ev.evaluate(reference, scope, expected)
        yield Operand(text, value, _decided(view, names, text, value) if scope.find(names[0]) is None else None)


def _decided(view: View, names: list[str], text: str, value: Value) -> Label | None:
    slot = view.slot(names)
    layers = origins(slot) if slot is not None else ()
    if not layers or layers[0].span.file in (SCHEMA, COMMAND_LINE):
        return None
    return Label(layers[0].span, f"{text} = {show(value)}")


def references(expr: syntax.Expr) -> Iterator[syntax.Expr]:
    """The names and paths an expression reads, from left to right."""
    pending: list[object] = [expr]
    while pending:
        node = pending.pop()
        match node:
            case syntax.Member() | syntax.NameRef():
                yield node
            case syntax.Comparison(operands=operands):
                pending += reversed(operands)
            case syntax.Binary(left=left, right=right):
                pending += [right, left]
            case syntax.Unary(operand=operand):
                pending.append(operand)
            case syntax.Conditional(condition=condition, then=then, otherwise=otherwise):
                pending += [otherwise, then, condition]
            case syntax.Call(arguments=arguments):
                pending += reversed(arguments)
            case syntax.Index(base=base, index=index):
                pending += [index, base]
            case syntax.ListExpr(items=items):
                pending += reversed(items)
