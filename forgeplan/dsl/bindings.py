"""Which names does a body declare, and may it?"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from forgeplan.diagnostics.codes import code
from forgeplan.diagnostics.diagnostic import Diagnostic, Label
from forgeplan.diagnostics.span import Span
from forgeplan.dsl import syntax
from forgeplan.dsl.scope import Binding, BrokenBinding, LetBinding, ParamBinding, Scope
from forgeplan.dsl.vocabulary import schema_words

TWICE = code(
    "FP0202", "one declaration per name and scope (let, param, import, plan, profile, node, source, sweep, test)"
)
TAKEN = code("FP0208", "`let` and `param` do not take a word of the schema (bare member, node kind, component)")

Report = Callable[[Diagnostic], None]


def declare_values(items: Iterable[syntax.Item], scope: Scope, report: Report) -> None:
    """Bind the `let`s and `param`s of a body in its scope."""
    for item in items:
        if isinstance(item, syntax.Let):
            declare(LetBinding(item.name.text, item.name.span, item.value, scope, item.type), scope, report)
        elif isinstance(item, syntax.Param):
            declare(ParamBinding(item.name.text, item.name.span, item, scope), scope, report)


def declare(binding: Binding, scope: Scope, report: Report) -> None:
    """Bind a name in a scope. A name that is a word of the schema, or taken, is reported and stays unusable."""
    meaning = schema_words().get(binding.name) if isinstance(binding, LetBinding | ParamBinding) else None
    earlier = scope.names.get(binding.name)
    if earlier is not None and earlier.span != binding.span:
        report(repeated(binding.name, binding.span, earlier.span))
        binding = BrokenBinding(binding.name, earlier.span)
    elif meaning is not None:
        message = f"`{binding.name}` cannot be declared: the word means {meaning}"
        report(TAKEN.at(binding.span, message, help=f"take a free name, such as `my_{binding.name}`"))
        binding = BrokenBinding(binding.name, binding.span)
    scope.names[binding.name] = binding


def repeated(name: str, span: Span, earlier: Span) -> Diagnostic:
    """What is said of a second declaration of a name."""
    return TWICE.at(Label(span, "again here"), f"`{name}` is declared twice", Label(earlier, "first here"))
