"""Which lints does the text itself allow, where, and is each of these allowances needed?

`# forge: allow NAME` stands above a statement and is about all of it, with everything in its braces; above `forge 1` it
is about the whole file.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from attrs import frozen

from forgeplan.diagnostics.codes import lint_code, registered
from forgeplan.diagnostics.diagnostic import Diagnostic, Edit, Fix, Safety
from forgeplan.diagnostics.source import Source, Sources
from forgeplan.diagnostics.span import Span
from forgeplan.diagnostics.suggest import did_you_mean, nearest
from forgeplan.dsl import syntax
from forgeplan.dsl.parser import parse
from forgeplan.lints.levels import lint_names

UNNEEDED = lint_code("unneeded-allow", "an allowance silences a lint that would speak there")
_MARK = "forge: allow"


@frozen
class Allowance:
    """A lint by name, the comment's word, and the text that it is about."""

    name: str
    word: Span
    scope: Span

    def covers(self, found: Diagnostic) -> bool:
        place = found.span
        if place is None or found.code != self.name or place.file != self.scope.file:
            return False
        return self.scope.start <= place.start <= self.scope.end


def allowances(sources: Sources) -> list[Allowance]:
    """Of every file that took part. Only files that have one are read again."""
    found: list[Allowance] = []
    for source in sources:
        if _MARK in source.text and not source.name.startswith("<"):
            found += _of_file(parse(source).file)
    return found


def _of_file(file: syntax.File) -> Iterator[Allowance]:
    yield from (Allowance(name.text, name.span, file.span) for name in file.allows)
    stack: list[syntax.Node] = [file]
    while stack:
        node = stack.pop()
        stack.extend(syntax.children(node))
        if isinstance(node, syntax.Item):
            yield from (Allowance(name.text, name.span, node.span) for name in node.allows)


def unneeded(
    given: Iterable[Allowance], spoken: Iterable[Diagnostic], source: Source, is_whole: bool
) -> list[Diagnostic]:
    """Allowances of a file that silence nothing. Where the file has errors, lints may be silent because of them."""
    spoken = list(spoken)
    faults = []
    for allowance in given:
        if allowance.word.file != source.name:
            continue
        message, help = _reason(allowance.name), ""
        if message is None:
            if not is_whole or any(allowance.covers(found) for found in spoken):
                continue
            message = f"`{allowance.name}` has nothing to say here"
        elif meant := nearest(allowance.name, lint_names()):
            help = did_you_mean(meant)
        fix = Fix("delete it", (Edit(_to_delete(allowance.word, source.text), ""),), Safety.SAFE)
        faults.append(UNNEEDED.at(allowance.word, message, help=help or (), fixes=fix))
    return faults


def _reason(name: str) -> str | None:
    """Why a name cannot be allowed; None for a lint."""
    if name in lint_names():
        return None
    return f"{name} is an error, and errors cannot be allowed" if name in registered() else f"there is no lint `{name}`"


def _to_delete(word: Span, text: str) -> Span:
    """The whole line where nothing else is allowed in it; else the name with what parts it from the next."""
    start = text.rfind("\n", 0, word.start) + 1
    end = text.find("\n", word.end)
    end = len(text) if end < 0 else end + 1
    before, behind = text[start : word.start], text[word.end : end]
    is_first = before.rstrip(" ,").endswith("allow")
    if is_first and not behind.strip(" ,\r\n"):
        return Span(word.file, start, end)
    if is_first:
        gap = len(behind) - len(behind.lstrip(" ,"))
        return Span(word.file, word.start, word.end + gap)
    return Span(word.file, start + len(before.rstrip(" ,")), word.end)
