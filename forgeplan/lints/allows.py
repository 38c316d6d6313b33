"""Which lints does the text itself allow, where, and is each of these allowances needed?

`# forge: allow NAME` stands above a statement and is about all of it, with everything in its braces; above `forge 1` it
is about the whole file.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from attrs import frozen

from forgeplan.diagnostics.codes import find, lint_code
from forgeplan.diagnostics.diagnostic import Diagnostic, Edit, Fix, Label, Safety
from forgeplan.diagnostics.source import Source, Sources
from forgeplan.diagnostics.span import Span
from forgeplan.diagnostics.suggest import did_you_mean, nearest
from forgeplan.dsl import syntax
from forgeplan.dsl.lexer import Comment
from forgeplan.dsl.parser import parse
from forgeplan.lints.levels import is_lint, lint_names

UNNEEDED = lint_code("unneeded-allow", "an allowance silences a lint that would speak there")
_MARK = re.compile(r"#\s*forge:\s*(\w+)?")


@frozen
class Allowance:
    """A lint by name, the comment's word, and the text that it is about: None where no statement is below it."""

    name: str
    word: Span
    scope: Span | None

    def covers(self, found: Diagnostic) -> bool:
        place = found.span
        if place is None or self.scope is None or found.code != self.name or place.file != self.scope.file:
            return False
        return self.scope.start <= place.start <= self.scope.end


def allowances(sources: Sources) -> list[Allowance]:
    """Of every file that took part. Only files that have one are read again."""
    found: list[Allowance] = []
    for source in sources:
        if _MARK.search(source.text) and not source.name.startswith("<"):
            parsed = parse(source)
            attached = list(_of_file(parsed.file))
            known = {one.word for one in attached}
            found += attached + [one for one in _of_comments(parsed.comments) if one.word not in known]
    return found


def _of_comments(comments: Iterable[Comment]) -> Iterator[Allowance]:
    """Every name after `# forge: allow`, and what stands in place of `allow` or of a name."""
    for comment in comments:
        mark = _MARK.match(comment.text)
        if mark is None:
            continue
        words = list(re.finditer(r"[\w-]+", comment.text[mark.end() :])) if mark[1] == "allow" else []
        for word in words:
            start = comment.span.start + mark.end() + word.start()
            yield Allowance(word[0], Span(comment.span.file, start, start + len(word[0])), None)
        if not words:
            yield Allowance("" if mark[1] == "allow" else mark[0], comment.span, None)


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
    by_code: dict[str, list[Diagnostic]] = {}
    for found in spoken:
        by_code.setdefault(found.code, []).append(found)
    faults = []
    for allowance in given:
        is_loose = allowance.scope is None
        if allowance.word.file != source.name or (is_loose and not is_whole):
            continue
        reason = _reason(allowance)
        if reason is None:
            if not is_whole or any(allowance.covers(found) for found in by_code.get(allowance.name, ())):
                continue
            reason = f"`{allowance.name}` has nothing to say here", ""
        message, help = reason
        fixes: tuple[Fix, ...] = ()
        if not is_loose:
            fixes = (Fix("delete it", (Edit(_to_delete(allowance.word, source.text), ""),), Safety.SAFE),)
        elsewhere = [Label(one.span, "this is not in it") for one in by_code.get(allowance.name, ()) if one.span]
        faults.append(UNNEEDED.at(allowance.word, message, *elsewhere[:1], help=help or (), fixes=fixes))
    return faults


def _reason(allowance: Allowance) -> tuple[str, str] | None:
    """Why a lint cannot be allowed so, with what to do; None where it can."""
    name = allowance.name
    if not name:
        return "no lint is named", "`# forge: allow NAME`, with the name that stands in the message"
    if name.startswith("#"):
        return f"`{name}` is nothing that a comment can say to forgeplan", "`# forge: allow NAME` silences a lint"
    if not is_lint(name):
        meant = nearest(name, lint_names())
        is_error = find(name) is not None
        message = f"{name} is an error, and errors cannot be allowed" if is_error else f"there is no lint `{name}`"
        return message, did_you_mean(meant) if meant and not is_error else ""
    if allowance.scope is None:
        return "no statement is directly below, so that this allows nothing", "put it on the line above the statement"
    return None


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
