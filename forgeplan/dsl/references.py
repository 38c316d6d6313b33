"""What stands behind a reference, and does following it ever come back to itself?"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any, NoReturn, Protocol

from forgeplan.diagnostics.codes import code
from forgeplan.diagnostics.diagnostic import Diagnostic, Label
from forgeplan.diagnostics.source import Sources
from forgeplan.diagnostics.span import NOWHERE, SCHEMA, Span
from forgeplan.dsl import syntax
from forgeplan.dsl.bounds import MAX_DEPTH, TOO_LARGE
from forgeplan.dsl.names import unknown_member
from forgeplan.dsl.scope import (
    Binding,
    BrokenBinding,
    LetBinding,
    ModuleBinding,
    ParamBinding,
    Scope,
    ValueBinding,
)
from forgeplan.dsl.values import Poison, Value
from forgeplan.spec import types as t

CYCLE = code("FP0203", "values, imports and `extends` are free of cycles")
UNDEFINED = code("FP0313", "the operation is defined for its operands: dimensions, divisor, index, member")

POISON = object()


class PlanReader(Protocol):
    """What expressions inside a plan can read besides what their scopes name."""

    def __contains__(self, name: object) -> bool: ...
    def names(self) -> list[str]: ...
    def read(self, ref: syntax.NameRef) -> Value: ...
    def entries(self, map: str) -> list[str] | None: ...
    def type_at(self, names: list[str]) -> t.FieldType | None: ...
    def is_derived(self, path: str) -> bool: ...
    def derived_below(self, path: str) -> list[str]: ...
    def reads_of(self, path: str) -> tuple[str, ...]: ...
    def derived_python(self, path: str) -> Any: ...
    def derived_value(self, path: str) -> Value: ...


class References(ABC):
    """Follows names of one view of one plan, or (with `plan` None) of the files themselves."""

    def __init__(
        self,
        sources: Sources,
        report: Callable[[Diagnostic], None],
        files: References | None = None,
        plan: PlanReader | None = None,
    ) -> None:
        self.sources = sources
        self.report = report
        self.files: References = files or self
        self.plan = plan
        self.given: Mapping[Binding, tuple[syntax.Expr, Scope]] = {}
        """Values of params from a sweep cell or the command line."""
        self.expects: Callable[[Binding], t.FieldType | None] = lambda binding: None
        """The declared type of a typed `let` or a `param`."""
        self.conform: Callable[[Any, Binding, Value], Value] = lambda ev, binding, value: value
        """Checks a value against its declared type and range."""
        self.scopes: list[Scope] = []
        """Scopes of the bodies that were opened; their `let`s are evaluated even if nobody reads them."""
        self.unclaimed: list[Diagnostic] = []
        """Faults of values that nobody wrote; an invariant of the compiler says more about them."""
        self.at: Span = NOWHERE
        """The reference that is being followed."""
        self._values: dict[Binding, Value | object] = {}
        self._active: dict[object, tuple[str, Span]] = {}
        self._operations = 0
        self._is_too_deep = False

    def fault(self, diagnostic: Diagnostic) -> Poison:
        """Report, and hand back what is raised to silence whatever depends on it."""
        self.report(diagnostic)
        return Poison()

    def text(self, span: Span) -> str:
        """The source text of a place."""
        source = self.sources.get(span.file)
        return source.text[span.start : span.end] if source else ""

    def enter(self, key: object, label: str, span: Span) -> None:
        """Begin the evaluation of something that can be referred to. Raises Poison at a cycle."""
        if key in self._active:
            self._cycle(key, span)
        if len(self._active) >= MAX_DEPTH:
            if not self._is_too_deep:
                self.report(TOO_LARGE.at(span, f"references nest deeper than {MAX_DEPTH:,}"))
            self._is_too_deep = True
            raise Poison
        self._active[key] = (label, span)

    def leave(self, key: object) -> None:
        self._active.pop(key, None)

    def _cycle(self, key: object, span: Span) -> NoReturn:
        keys = list(self._active)
        around = [self._active[k] for k in keys[keys.index(key) :]]
        labels = [label for label, _ in around]
        spans = [s for _, s in around[1:]] + [span]
        first = spans.index(min(spans))
        labels = labels[first:] + labels[:first]
        spans = spans[first:] + spans[:first]
        edges = [
            Label(s, f"{a} needs {b}")
            for s, a, b in zip(spans, labels, labels[1:] + labels[:1], strict=True)
            if s.file != SCHEMA
        ]
        path = " → ".join([*labels, labels[0]])
        message = f"the value needs itself: {path}"
        help = "the base's value is amended by dotted statements: `optimizer.lr = …`" if len(around) == 1 else ()
        raise self.fault(CYCLE.at(edges[0] if edges else spans[0], message, *edges[1:], help=help))

    def value_of(self, binding: Binding, span: Span) -> Value:
        """The value behind a name. Raises Poison."""
        if isinstance(binding, ValueBinding):
            return binding.value
        if isinstance(binding, LetBinding):
            home = self.files if binding.scope.is_file() else self
            return home._constant(binding, binding.expr, binding.scope, span)
        if isinstance(binding, ParamBinding):
            expr, scope = self.files.given.get(binding, (binding.param.default, binding.scope))
            if expr is None:
                raise Poison
            return self.files._constant(binding, expr, scope, span)
        if isinstance(binding, ModuleBinding):
            message = f"`{binding.name}` is an imported file, not a value"
            raise self.fault(UNDEFINED.at(span, message, help=f"read one of its names: `{binding.name}.…`"))
        raise Poison

    @abstractmethod
    def evaluate(self, expr: syntax.Expr, scope: Scope, expected: t.FieldType | None = None) -> Value:
        """The value of an expression. Raises Poison."""

    def _constant(self, binding: Binding, expr: syntax.Expr, scope: Scope, span: Span) -> Value:
        found = self._values.get(binding, None)
        if found is None and binding not in self._values:
            self.enter(binding, f"`{binding.name}`", span)
            found = POISON
            try:
                found = self.conform(self, binding, self.evaluate(expr, scope, self.expects(binding)))
            finally:
                self._values[binding] = found
                self.leave(binding)
        if found is POISON:
            raise Poison
        return found  # type: ignore[return-value]

    def exported(self, module: ModuleBinding, name: syntax.Name) -> Binding:
        """A name of an imported file. Raises Poison."""
        binding = module.scope.names.get(name.text)
        if binding is None:
            raise self.fault(unknown_member(module.name, name, list(module.scope.names)))
        if isinstance(binding, BrokenBinding):
            raise Poison
        return binding
