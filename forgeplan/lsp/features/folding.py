"""Which runs of lines can be folded: bodies and lists over several lines, runs of comments and of imports."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from lsprotocol import types as lsp

from forgeplan.dsl import syntax
from forgeplan.dsl.tokens import CLOSER, OPENER
from forgeplan.lsp.snapshot import Snapshot


def folding_ranges(snapshot: Snapshot) -> list[lsp.FoldingRange]:
    """In order of their first lines. What a fault leaves open is not folded."""
    found = [*_brackets(snapshot), *_comments(snapshot), *_imports(snapshot)]
    return sorted(found, key=lambda fold: (fold.start_line, -fold.end_line))


def _brackets(snapshot: Snapshot) -> Iterator[lsp.FoldingRange]:
    tokens, stack = snapshot.parsed.raw, []
    for i, kind in enumerate(tokens.kinds):
        if kind in CLOSER:
            stack.append((kind, snapshot.positions.line_of(tokens.starts[i])))
        elif kind in OPENER and stack and stack[-1][0] == OPENER[kind]:
            first, last = stack.pop()[1], snapshot.positions.line_of(tokens.starts[i])
            if last - first > 1:
                yield lsp.FoldingRange(first, last - 1)  # The closing bracket stays in sight.


def _comments(snapshot: Snapshot) -> Iterator[lsp.FoldingRange]:
    lines = [snapshot.positions.line_of(c.span.start) for c in snapshot.parsed.comments if c.alone]
    for first, last in _runs(lines):
        yield lsp.FoldingRange(first, last, kind=lsp.FoldingRangeKind.Comment)


def _imports(snapshot: Snapshot) -> Iterator[lsp.FoldingRange]:
    items = [i for i in snapshot.parsed.file.items if isinstance(i, syntax.Import | syntax.FromImport)]
    for first, last in _runs(snapshot.positions.line_of(item.span.start) for item in items):
        yield lsp.FoldingRange(first, last, kind=lsp.FoldingRangeKind.Imports)


def _runs(lines: Iterable[int]) -> Iterator[tuple[int, int]]:
    """Runs of at least two neighbouring lines."""
    first = last = -2
    for line in (*lines, -1):
        if line == last + 1:
            last = line
            continue
        if last > first:
            yield first, last
        first = last = line
