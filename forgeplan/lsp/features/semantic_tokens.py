"""Which kind of word is each word of a document?

The tree decides, so that a keyword that serves as a name is a name. Words that could not be read have no kind here; the
editor's own grammar colours them.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator

from lsprotocol import types as lsp

from forgeplan.diagnostics.span import Span
from forgeplan.dsl import syntax
from forgeplan.dsl.tokens import RESERVED, SOFT_KINDS
from forgeplan.lsp.snapshot import Snapshot
from forgeplan.spec.registry import kinds_of

TYPES = (
    *("keyword", "property", "enumMember", "type", "variable", "parameter", "string", "number", "comment"),
    *("operator", "class", "namespace", "function"),
)
MODIFIERS = ("declaration", "documentation")
LEGEND = lsp.SemanticTokensLegend(TYPES, MODIFIERS)

_OPERATORS = frozenset(("EQ", "PLUSEQ", "PLUS", "MINUS", "TIMES", "POWER", "COMPARE", "RANGE"))
_SYMBOLS = {
    "let": "variable",
    "param": "parameter",
    "plan": "class",
    "import": "namespace",
    "imported": "variable",
    "variable": "variable",
    "profile": "class",
    "sweep": "class",
    "entry": "property",
}


_OF_GRAMMARS = frozenset(("string", "number", "comment", "operator"))
"""Kinds that an editor's own grammar colours in more detail: `${…}`, units, `forge: allow`."""


def semantic_tokens(snapshot: Snapshot, augments: bool = False) -> lsp.SemanticTokens:
    """All tokens, encoded as differences of place; only what a grammar cannot know, where they augment one."""
    data: list[int] = []
    line = character = 0
    for span, kind, modifiers in _pieces(snapshot):
        if augments and kind in _OF_GRAMMARS:
            continue
        start = snapshot.positions.position(span.start)
        end = snapshot.positions.position(span.end)
        if start.line != end.line or end.character <= start.character:
            continue
        step = start.line - line
        data += [step, start.character - (0 if step else character), end.character - start.character]
        data += [TYPES.index(kind), sum(1 << MODIFIERS.index(m) for m in modifiers)]
        line, character = start.line, start.character
    return lsp.SemanticTokens(data)


Piece = tuple[Span, str, tuple[str, ...]]


def _pieces(snapshot: Snapshot) -> Iterator[Piece]:
    """In order of place, none over another."""
    named = dict(_words(snapshot))
    found = [*_of_tokens(snapshot, named), *_comments(snapshot)]
    return iter(sorted(found, key=lambda piece: piece[0].start))


def _comments(snapshot: Snapshot) -> Iterator[Piece]:
    for comment in snapshot.parsed.comments:
        yield comment.span, "comment", ("documentation",) if comment.text.startswith("##") else ()


def _of_tokens(snapshot: Snapshot, named: dict[int, Piece]) -> Iterator[Piece]:
    tokens = snapshot.parsed.raw
    starts = sorted(named)

    def inside(span: Span) -> list[int]:
        return starts[bisect_right(starts, span.start) : bisect_left(starts, span.end)]

    for i, kind in enumerate(tokens.kinds):
        span = tokens.span(i)
        if span.start in named:
            yield named[span.start]
        elif kind == "STRING":
            yield from _text(span, snapshot.text, [named[start] for start in inside(span)])
        elif kind == "NUMBER":
            yield span, "number", ()
        elif kind in _OPERATORS:
            yield span, "operator", ()
        elif kind in SOFT_KINDS or tokens.word(i) in RESERVED:
            yield span, "keyword", ()


def _text(span: Span, text: str, embedded: list[Piece]) -> Iterator[Piece]:
    """A text around the words of the expressions that it embeds."""
    start = span.start
    for piece in embedded:
        yield from _lines(Span(span.file, start, piece[0].start), text, "string")
        yield piece
        start = piece[0].end
    yield from _lines(Span(span.file, start, span.end), text, "string")


def _lines(span: Span, text: str, kind: str) -> Iterator[Piece]:
    """A token line by line, as those of several lines cannot be told."""
    start = span.start
    for line in text[span.start : span.end].split("\n"):
        yield Span(span.file, start, start + len(line)), kind, ()
        start += len(line) + 1


def _words(snapshot: Snapshot) -> Iterator[tuple[int, Piece]]:
    """Words by their offset; what stands later in this list wins."""
    stack: list[syntax.Node] = [snapshot.parsed.file]
    roots: list[tuple[int, Piece]] = []
    while stack:
        node = stack.pop()
        stack.extend(syntax.children(node))
        match node:
            case syntax.Assign(path=path) | syntax.Delete(path=path) | syntax.SweepAxis(path=path):
                for name in path.names:
                    yield _piece(name.span, "property")
            case syntax.NodeDecl():
                yield _piece(node.kind.span, "keyword")
            case syntax.NameRef(name=word, span=span) if word != "self":
                yield _piece(span, "type" if kinds_of(word) else "enumMember")
            case syntax.Member(base=base, name=name):
                yield _piece(name.span, "property")
                if isinstance(base, syntax.NameRef) and base.name != "self":
                    roots.append(_piece(base.span, "property"))
            case syntax.Call(function=syntax.NameRef(span=span)):
                roots.append(_piece(span, "function"))
            case syntax.TypeExpr(name=name):
                yield _piece(name.span, "type")
            case syntax.Number(unit_span=unit) if unit is not None:
                yield _piece(unit, "number")
    yield from roots
    declared = {symbol.span.start: symbol for symbol in snapshot.index.symbols}
    for occurrence in snapshot.index.occurrences:
        symbol = snapshot.index.declared(occurrence.target)
        kind = _SYMBOLS[symbol.kind] if symbol is not None else "variable"
        modifiers = ("declaration",) if occurrence.span.start in declared else ()
        yield occurrence.span.start, (occurrence.span, kind, modifiers)


def _piece(span: Span, kind: str) -> tuple[int, Piece]:
    return span.start, (span, kind, ())
