"""Which names of a file does nobody read?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from forgeplan.diagnostics.codes import lint_code
from forgeplan.diagnostics.diagnostic import Diagnostic, Edit, Fix, Safety
from forgeplan.diagnostics.source import Source
from forgeplan.diagnostics.span import Span
from forgeplan.dsl import syntax
from forgeplan.dsl.symbols import Symbol, Target, index_of

UNUSED = lint_code("unused-name", "a `let`, `param` or import is read")
_WORDS = {"let": "`let`", "param": "`param`", "import": "import", "imported": "import"}


def unused_names(file: syntax.File, source: Source) -> list[Diagnostic]:
    """Names of a file with a plan that runs; one without is there to be imported."""
    if not any(isinstance(item, syntax.Plan) and not item.partial for item in file.items):
        return []
    index = index_of(file, source.name)
    readers: Counter[Target] = Counter(one.target for one in index.occurrences)
    unread = (one for one in index.symbols if one.kind in _WORDS and readers[one.target] == 1)
    return [UNUSED.at(one.span, _message(one), fixes=_fix(one, source)) for one in unread]


def _message(symbol: Symbol) -> str:
    return f"nobody reads the {_WORDS[symbol.kind]} `{symbol.target.name}`"


def _fix(symbol: Symbol, source: Source) -> Fix:
    item = symbol.item
    if isinstance(item, syntax.FromImport) and len(item.names) > 1:
        span = _without_comma(symbol.span, item, source.text)
    else:
        span = _with_lines(item.span, source)
    return Fix("delete it", (Edit(span, ""),), Safety.SAFE)


def _without_comma(name: Span, item: syntax.FromImport, text: str) -> Span:
    """A name of several, with the comma that parts it from its neighbour."""
    spans = [one.span for one in item.names]
    place = next(i for i, one in enumerate(spans) if one.start == name.start)
    if place + 1 < len(spans):
        return Span(name.file, name.start, spans[place + 1].start)
    return Span(name.file, spans[place - 1].end, name.end)


def _with_lines(span: Span, source: Source) -> Span:
    """A statement with the doc comment above it, and its lines where nothing else stands on them."""
    text = source.text
    start, end = text.rfind("\n", 0, span.start) + 1, text.find("\n", span.end)
    end = len(text) if end < 0 else end + 1
    if text[start : span.start].strip() or text[span.end : end].strip():
        return span
    for line in _lines_above(start, text):
        if not text[line:start].strip().startswith("##"):
            break
        start = line
    if not text[end : text.find("\n", end) + 1].strip() and (start == 0 or text[:start].endswith("\n\n")):
        end = max(end, text.find("\n", end) + 1)  # Of the empty lines around it one stays.
    return Span(span.file, start, end)


def _lines_above(start: int, text: str) -> Iterator[int]:
    """Starts of the lines above one, upwards."""
    while start > 0:
        start = text.rfind("\n", 0, start - 1) + 1
        yield start
