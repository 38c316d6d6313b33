"""What encloses a place, from the word outwards?"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from lsprotocol import types as lsp

from forgeplan.diagnostics.span import Span
from forgeplan.dsl import syntax
from forgeplan.lsp.snapshot import Snapshot


def selection_ranges(snapshot: Snapshot, places: Iterable[int]) -> list[lsp.SelectionRange]:
    """One chain a place: each range lies in the next."""
    return [_chain(snapshot, at) for at in places]


def _chain(snapshot: Snapshot, at: int) -> lsp.SelectionRange:
    spans = [Span(snapshot.name, 0, len(snapshot.text)), *_enclosing(snapshot.parsed.file, at), _token(snapshot, at)]
    found: lsp.SelectionRange | None = None
    for outer, span in zip([None, *spans], spans, strict=False):
        if outer is None or (outer != span and outer.start <= span.start and span.end <= outer.end):
            found = lsp.SelectionRange(snapshot.range(span), found)
    return found or lsp.SelectionRange(snapshot.positions.whole())


def _enclosing(node: syntax.Node, at: int) -> Iterator[Span]:
    """Spans of the nodes around an offset, outermost first."""
    for child in syntax.children(node):
        if child.span.start <= at <= child.span.end:
            yield child.span
            yield from _enclosing(child, at)
            return


def _token(snapshot: Snapshot, at: int) -> Span:
    tokens = snapshot.parsed.raw
    for i in range(len(tokens)):
        if tokens.starts[i] <= at <= tokens.ends[i] and tokens.kinds[i] != "NL":
            return tokens.span(i)
    return Span(snapshot.name, at, at)
