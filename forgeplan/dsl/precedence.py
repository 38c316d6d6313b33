"""Which operator takes which operands? The grammar hands over a flat chain; here it becomes a tree.

From loose to tight: `or`, `and`, `not`, comparisons and `in`, `..`, `+ -`, `* / // %`, unary `+ -`, `**`.
"""

from __future__ import annotations

from typing import Any, Protocol

from forgeplan.diagnostics.span import Span
from forgeplan.dsl import syntax

_BINARY = {"or": 1, "and": 2, "in": 4, "..": 5, "+": 6, "-": 6, "*": 7, "/": 7, "//": 7, "%": 7, "**": 9}
_COMPARISON = 4
_NOT = 3
_SIGN = 8


class Words(Protocol):
    """Gives the text and place of a token."""

    def word(self, index: int) -> str: ...

    def token_span(self, index: int) -> Span: ...


def fold(words: Words, chain: list[Any]) -> syntax.Expr:
    """The tree of `[prefix…] operand (operator [prefix…] operand)*`; operators are token indices, operands nodes."""
    return _Fold(words, chain).expression(0)


class _Fold:
    def __init__(self, words: Words, chain: list[Any]) -> None:
        self.words, self.chain, self.at = words, chain, 0

    def expression(self, least: int) -> syntax.Expr:
        left = self.operand()
        while self.at < len(self.chain):
            index = self.chain[self.at]
            operator = self.words.word(index)
            level = _BINARY.get(operator, _COMPARISON)
            if level < least:
                break
            if operator not in _BINARY:
                left = self.comparison(left)
                continue
            self.at += 1
            right = self.expression(level if operator == "**" else level + 1)
            span = left.span.to(right.span)
            left = syntax.Binary(operator, left, right, self.words.token_span(index), span=span)
        return left

    def operand(self) -> syntax.Expr:
        part = self.chain[self.at]
        self.at += 1
        if not isinstance(part, int):
            return part  # type: ignore[no-any-return]
        operator = self.words.word(part)
        operand = self.expression(_NOT if operator == "not" else _SIGN)
        return syntax.Unary(operator, operand, span=self.words.token_span(part).to(operand.span))

    def comparison(self, first: syntax.Expr) -> syntax.Expr:
        operands, operators = [first], []
        while self.at < len(self.chain):
            operator = self.words.word(self.chain[self.at])
            if operator in _BINARY:
                break
            self.at += 1
            operators.append(operator)
            operands.append(self.expression(_COMPARISON + 1))
        return syntax.Comparison(tuple(operands), tuple(operators), span=first.span.to(operands[-1].span))
