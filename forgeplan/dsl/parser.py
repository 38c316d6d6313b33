"""What is the syntax tree of a text, and which faults does it have? Never an exception, whatever the text."""

from __future__ import annotations

import gc
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from attrs import Factory, define, frozen

from forgeplan.diagnostics.codes import code
from forgeplan.diagnostics.diagnostic import Diagnostic, Edit, Fix, Label, Safety
from forgeplan.diagnostics.source import Source
from forgeplan.diagnostics.span import Span
from forgeplan.dsl import syntax
from forgeplan.dsl.builder import Builder, Edition
from forgeplan.dsl.depth import SUSPICIOUS_BRACKETS, too_deep
from forgeplan.dsl.driver import Run
from forgeplan.dsl.layout import close, layout
from forgeplan.dsl.lexer import FP0112, MAX_FAULTS, Comment, Lexed, lex
from forgeplan.dsl.placement import placed
from forgeplan.dsl.recovery import recover
from forgeplan.dsl.repair import repair
from forgeplan.dsl.tokens import Token, Tokens
from forgeplan.dsl.trivia import attach

FP0109 = code("FP0109", "the first statement is `forge N`, once, N a known edition")

EDITIONS = (1,)
MAX_BYTES = 16 * 2**20


@frozen
class Parsed:
    """A text as read: the tree, its faults in order, its comments. `tokens` includes newlines."""

    file: syntax.File
    diagnostics: list[Diagnostic]
    raw: Tokens
    comments: list[Comment]

    @property
    def tokens(self) -> list[Token]:
        return list(self.raw)


def parse(source: Source) -> Parsed:
    """The tree of a whole file. Broken parts are `ErrorItem` and `ErrorExpr`, each reported once."""
    whole = Span(source.name, 0, len(source.text))
    if len(source.text) > MAX_BYTES:
        message = f"the file has {len(source.text):,} characters, and {MAX_BYTES:,} is the bound"
        fault = FP0112.at(Span(source.name, 0, 1), message)
        return Parsed(_unreadable(whole), [fault], Tokens(source.name, source.text), [])
    lexed = lex(source.name, source.text)
    if lexed.gave_up:
        return Parsed(_unreadable(whole), _first_faults(lexed.diagnostics), lexed.tokens, lexed.comments)
    items, diagnostics = _Reading(lexed).items(len(source.text))
    edition, rest, faults = _edition(items, source, diagnostics)
    diagnostics += faults
    rest = list(placed(rest, "file", diagnostics))
    diagnostics = in_order(_without_consequences(diagnostics, source))
    if any(fault.code == "FP0112" for fault in diagnostics):
        diagnostics = [fault for fault in diagnostics if fault.code == "FP0112"][:1]
    elif len(diagnostics) > MAX_FAULTS:
        return Parsed(_unreadable(whole), _first_faults(diagnostics), lexed.tokens, lexed.comments)
    allows = next((item.allows for item in items if isinstance(item, Edition)), ())
    return Parsed(syntax.File(edition, tuple(rest), allows, span=whole), diagnostics, lexed.tokens, lexed.comments)


def _first_faults(diagnostics: list[Diagnostic]) -> list[Diagnostic]:
    """At most MAX_FAULTS, and one in place of all that follow."""
    first = in_order(diagnostics)
    if len(first) <= MAX_FAULTS:
        return first
    message = f"the text has more than {MAX_FAULTS:,} faults, and what stands from here on is not read"
    return [*first[:MAX_FAULTS], FP0112.at(first[MAX_FAULTS].span, message, help="is this a plan file?")]


def parse_expression(text: str, source_name: str) -> tuple[syntax.Expr, list[Diagnostic]]:
    """The tree of a text that is one expression, such as the value of `--set` or a default of the schema."""
    return _parse_range(source_name, text, 0, len(text))


_OF_THE_LINE = ("FP0101", "FP0103", "FP0104", "FP0105")


def _without_consequences(diagnostics: list[Diagnostic], source: Source) -> list[Diagnostic]:
    """Leave out what follows from a string that does not close: the rest of its line or file is text."""
    lines: set[int] = set()
    cut = len(source.text) + 1
    for fault in diagnostics:
        if fault.code == "FP0102" and fault.span is not None:
            if source.text.startswith('"""', fault.span.start):
                cut = min(cut, fault.span.start)
            lines.add(source.position(fault.span.start)[0])
    if not lines:
        return diagnostics
    kept = []
    for fault in diagnostics:
        related = fault.code in _OF_THE_LINE and fault.span is not None
        unclosed = fault.code == "FP0104" and any(label.span.start >= cut for label in fault.labels)
        if not unclosed and not (related and fault.span and source.position(fault.span.start)[0] in lines):
            kept.append(fault)
    return kept


def in_order(diagnostics: list[Diagnostic]) -> list[Diagnostic]:
    """Sorted by place and code, each once."""
    return sorted(dict.fromkeys(diagnostics), key=Diagnostic.sort_key)


def _parse_range(file: str, text: str, start: int, end: int) -> tuple[syntax.Expr, list[Diagnostic]]:
    lexed = lex(file, text, start, end)
    if lexed.gave_up:
        return syntax.ErrorExpr(span=Span(file, start, end)), lexed.diagnostics
    return _Reading(lexed).expression(start, end)


def _unreadable(whole: Span) -> syntax.File:
    return syntax.File(None, (syntax.ErrorItem(span=whole),), span=whole)


def _recover(run: Run, at: int) -> int | None:
    return recover(run, at) if len(run.builder.diagnostics) <= MAX_FAULTS else None


@contextmanager
def _collector_paused() -> Iterator[None]:
    """Trees have no cycles, and a collector that walks a growing tree again and again is slower than linear."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


@define
class _Reading:
    """One lexed text on its way to a tree."""

    lexed: Lexed
    diagnostics: list[Diagnostic] = Factory(list)

    def items(self, end: int) -> tuple[list[syntax.Item], list[Diagnostic]]:
        run = self._run(end, "start")
        with _collector_paused():
            items = run.parse(_recover) or []
        deep = self._too_deep(run, items)
        return [] if deep else items, [*self.diagnostics, *run.builder.diagnostics, *deep]

    def expression(self, start: int, end: int) -> tuple[syntax.Expr, list[Diagnostic]]:
        run = self._run(end, "expr")
        value = run.parse(recover)
        if value is None:
            value = syntax.ErrorExpr(span=Span(self.lexed.tokens.file, start, end))
        deep = self._too_deep(run, [value])
        if deep:
            value = syntax.ErrorExpr(span=value.span)
        return value, in_order([*self.diagnostics, *run.builder.diagnostics, *deep])

    def _too_deep(self, run: Run, roots: Sequence[syntax.Node]) -> list[Diagnostic]:
        if self.lexed.depth <= SUSPICIOUS_BRACKETS and not run.builder.suspicious:
            return []
        fault = too_deep(roots)
        return [fault] if fault else []

    def _run(self, end: int, start_rule: str) -> Run:
        raw = self.lexed.tokens
        self.diagnostics = list(self.lexed.diagnostics)
        if not self.lexed.balanced:
            raw, faults = repair(raw)
            self.diagnostics += faults
        tokens = layout(raw)
        if start_rule == "start":
            close(tokens, end)
        else:
            tokens.append("$END", end, end)
        attached = attach(tokens, self.lexed.comments)
        builder = Builder(tokens, attached, lambda a, b: _parse_range(raw.file, raw.text, a, b))
        return Run(tokens, builder, start_rule)


def _edition(
    items: list[syntax.Item], source: Source, known_faults: list[Diagnostic]
) -> tuple[int | None, list[syntax.Item], list[Diagnostic]]:
    """The edition, the items without `forge N`, and what is wrong with the edition."""
    file = source.name
    faults: list[Diagnostic] = []
    edition: int | None = None
    editions = [item for item in items if isinstance(item, Edition)]
    rest = [item for item in items if not isinstance(item, Edition)]
    known = ", ".join(map(str, EDITIONS))
    if not editions:
        start = items[0].span.start if items else 0
        line = source.position(start)[0]
        if not any(fault.span and source.position(fault.span.start)[0] <= line for fault in known_faults):
            fix = Fix("insert `forge 1`", (Edit(Span(file, 0, 0), "forge 1\n\n"),), Safety.SAFE)
            message = "the first statement of a plan file is its edition, `forge 1`"
            faults.append(FP0109.at(Span(file, start, start + 1), message, fixes=fix))
        return None, rest, faults
    first = editions[0]
    number = first.number
    if isinstance(number, syntax.Number) and number.amount in EDITIONS and number.unit is None:
        edition = int(number.amount)
    elif not isinstance(number, syntax.ErrorExpr):
        shown = number.spelling if isinstance(number, syntax.Number) else "this"
        fix = Fix("write edition 1", (Edit(number.span, "1"),), Safety.ASK)
        faults.append(
            FP0109.at(number.span, f"`{shown}` is not a known edition", help=f"known editions: {known}", fixes=fix)
        )
    if items[0] is not first and not isinstance(items[0], syntax.ErrorItem):
        other = Label(items[0].span, "this stands before it")
        faults.append(FP0109.at(first.span, "the edition is not the first statement", other))
    for again in editions[1:]:
        fix = Fix("delete it", (Edit(again.span, ""),), Safety.SAFE)
        faults.append(FP0109.at(again.span, "the edition is given twice", Label(first.span, "first here"), fixes=fix))
    return edition, rest, faults
