"""Which names of a file does nobody read?"""

from __future__ import annotations

from collections.abc import Mapping

from forgeplan.diagnostics.codes import lint_code
from forgeplan.diagnostics.diagnostic import Diagnostic, Edit, Fix, Safety
from forgeplan.diagnostics.source import Source
from forgeplan.diagnostics.span import Span
from forgeplan.dsl import syntax
from forgeplan.dsl.symbols import Index, Symbol, index_of
from forgeplan.lints.deleting import Siblings, deletion, statements

UNUSED = lint_code("unused-name", "a `let`, `param` or import is read")
_WORDS = {"let": "`let`", "param": "`param`", "import": "import", "imported": "import"}


def unused_names(file: syntax.File, source: Source) -> list[Diagnostic]:
    """Names of a file with a plan that runs; one without is there to be imported."""
    if not any(isinstance(item, syntax.Plan) and not item.partial for item in file.items):
        return []
    places = {siblings[index].span: (siblings, index) for siblings, index in statements(file)}
    index = index_of(file, source.name)
    unread = _unread(index)
    # One that others read goes after them.
    return [
        UNUSED.at(one.span, _message(one, readers), fixes=() if readers else _fix(one, file, places, source))
        for one, readers in unread
    ]


def _unread(index: Index) -> list[tuple[Symbol, list[str]]]:
    """Names that are not read, or only by such names, which are then named; in the order of the text."""
    candidates = [one for one in index.symbols if one.kind in _WORDS]
    reads = {one.target: [o.span for o in index.of(one.target) if o.span != one.span] for one in candidates}
    unread: dict[Symbol, list[str]] = {}
    while True:
        new = {
            one: readers
            for one in candidates
            if one not in unread and (readers := _readers(reads[one.target], unread)) is not None
        }
        if not new:
            return [(one, unread[one]) for one in candidates if one in unread]
        unread |= new


def _readers(places: list[Span], unread: Mapping[Symbol, list[str]]) -> list[str] | None:
    """Which of the unread names have all the places in their statements; None if others read there too."""
    names: dict[str, None] = {}
    for place in places:
        around = next((one for one in unread if _holds(one.item.span, place)), None)
        if around is None:
            return None
        names[around.target.name] = None
    return list(names)


def _holds(whole: Span, part: Span) -> bool:
    return whole.file == part.file and whole.start <= part.start and part.end <= whole.end


def _message(symbol: Symbol, readers: list[str]) -> str:
    what = f"the {_WORDS[symbol.kind]} `{symbol.target.name}`"
    return f"only `{readers[0]}`, which nobody reads, reads {what}" if readers else f"nobody reads {what}"


def _fix(symbol: Symbol, file: syntax.File, places: Mapping[Span, tuple[Siblings, int]], source: Source) -> Fix:
    """To delete it. Another file may import what this one declares, and a command line set a param: a person knows."""
    item = symbol.item
    is_public = isinstance(item, syntax.Let | syntax.Param) and any(item is one for one in file.items)
    safety = Safety.ASK if is_public else Safety.SAFE
    if isinstance(item, syntax.FromImport) and len(item.names) > 1:
        return Fix("delete it", (Edit(_without_comma(symbol.span, item), ""),), safety)
    return Fix("delete it", (deletion(source.text, *places[item.span]),), safety)


def _without_comma(name: Span, item: syntax.FromImport) -> Span:
    """A name of several, with the comma that parts it from its neighbour."""
    spans = [one.span for one in item.names]
    place = next(i for i, one in enumerate(spans) if one.start == name.start)
    if place + 1 < len(spans):
        return Span(name.file, name.start, spans[place + 1].start)
    return Span(name.file, spans[place - 1].end, name.end)
