"""Is an expression nested so deeply that walking it could exhaust the stack?

Brackets are bounded by the lexer and operators of one chain by the builder; what is left are long chains of `.name`,
calls and `else if`, and deep combinations of all of them.
"""

from __future__ import annotations

from collections.abc import Iterable

from forgeplan.diagnostics.diagnostic import Diagnostic
from forgeplan.diagnostics.span import Span
from forgeplan.dsl import syntax
from forgeplan.dsl.lexer import FP0112

MAX_OPERATORS = 128
"""In one expression without brackets."""

MAX_DEPTH = 160
"""Of expressions within expressions."""

SUSPICIOUS_BRACKETS = 8
SUSPICIOUS_OPERATORS = 8
SUSPICIOUS_LENGTH = 400
"""Below all three (brackets open at once, operators of a chain, characters of a chain of `.name`) no walk is needed."""


def too_many_operators(span: Span) -> Diagnostic:
    message = f"more than {MAX_OPERATORS} operators stand in one expression"
    return FP0112.at(span, message, help="give parts of it a name with `let`")


def too_deep(roots: Iterable[syntax.Node]) -> Diagnostic | None:
    """A fault at the first expression that is nested deeper than the bound."""
    stack: list[tuple[syntax.Node, int]] = [(root, 0) for root in roots]
    while stack:
        node, depth = stack.pop()
        depth += isinstance(node, syntax.Expr)
        if depth > MAX_DEPTH:
            help = "give parts of it a name with `let`"
            span = Span(node.span.file, node.span.start, node.span.start + 1)
            return FP0112.at(span, f"an expression is nested deeper than {MAX_DEPTH} levels", help=help)
        stack.extend((child, depth) for child in syntax.children(node))
    return None
