"""Where did parsing stop, and what can be seen around that place?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from attrs import frozen

from forgeplan.diagnostics.diagnostic import Diagnostic, Edit, Fix, Safety
from forgeplan.diagnostics.span import Span
from forgeplan.dsl.tokens import SOFT_KINDS, Tokens

if TYPE_CHECKING:
    from forgeplan.dsl.driver import Run


@frozen
class Site:
    """A fault at token `at` of the statement or list item that begins at `first` and ends before `end`.

    `frame` is what it stands in: file, body, list or expression. `partial` is what the stack holds of it.
    """

    run: Run
    at: int
    first: int
    end: int
    frame: str
    partial: tuple[Any, ...]

    @property
    def tokens(self) -> Tokens:
        return self.run.tokens

    @property
    def in_body(self) -> bool:
        return self.frame in ("body", "file")

    def kind(self, index: int) -> str:
        return self.tokens.kinds[index] if 0 <= index < len(self.tokens) else ""

    def word(self, index: int) -> str:
        return self.tokens.word(index)

    def span(self, first: int, last: int | None = None) -> Span:
        tokens = self.tokens
        return Span(tokens.file, tokens.starts[first], tokens.ends[first if last is None else last])

    def gap(self, before: int) -> Span:
        """The empty place directly behind the token that precedes `before`."""
        end = self.tokens.ends[before - 1] if before else 0
        return Span(self.tokens.file, end, end)

    def place(self) -> Span:
        """The token at fault; just behind the last one where a line or text ends too early."""
        if self.kind(self.at) == "NL" or self.tokens.starts[self.at] == self.tokens.ends[self.at]:
            gap = self.gap(self.at)
            return Span(gap.file, gap.start, gap.start + (self.kind(self.at) == "NL"))
        return self.span(self.at)

    def only_path(self) -> bool:
        """Whether nothing but a dotted name stands before the fault."""
        return self.at > self.first and all(self.kind(i) in ("NAME", "DOT") for i in range(self.first, self.at))

    def text(self, first: int, last: int) -> str:
        return self.tokens.text[self.tokens.starts[first] : self.tokens.ends[last]]


@frozen
class Verdict:
    """`go_on` is the token to go on with where the fault is mended; None where the statement is to be skipped.

    After a guess, further faults on the line are likely its consequence.
    """

    diagnostic: Diagnostic
    go_on: int | None = None
    is_guess: bool = False


def path_at(tokens: Tokens, first: int) -> list[int]:
    """The names of a path that begins at `first` and is followed by `=` or `+=`; empty if there is none."""
    names = []
    kinds, limit = tokens.kinds, len(tokens)
    while first + 1 < limit and (kinds[first] == "NAME" or kinds[first] in SOFT_KINDS):
        names.append(first)
        if kinds[first + 1] in ("EQ", "PLUSEQ"):
            return names
        if kinds[first + 1] != "DOT":
            break
        first += 2
    return []


def safe(title: str, edit: Edit) -> Fix:
    return Fix(title, (edit,), Safety.SAFE)
