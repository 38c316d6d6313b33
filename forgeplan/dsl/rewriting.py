"""Which edit puts a statement into a body, or takes one out, so that the text reads as if a person had done it?"""

from __future__ import annotations

import re
from collections.abc import Sequence

from forgeplan.diagnostics.diagnostic import Edit
from forgeplan.diagnostics.span import Span
from forgeplan.dsl import syntax

_SPACE = " \t"
_DOC = re.compile(r"[ \t]*(##|#\s*forge:\s*allow\b)")
_STEP = "  "


def put_into(text: str, record: syntax.Record, statement: str) -> Edit:
    """Write a statement behind the last one of `{ … }`: on a line of its own where that one has one."""
    start, end = record.span.start + 1, record.span.end - 1
    if not record.items:
        return _into_empty(text, record, statement)
    last = record.items[-1].span.end
    line_end = _line_end(text, last)
    if text.count("\n", start, end) and line_end < end and _begins_line(text, record.items[-1].span.start):
        at = line_end - (text[:line_end].endswith("\r") and text[line_end : line_end + 1] == "\n")
        indent = _indent(text, record.items[-1].span.start)
        return _insert(record, at, f"{_newline(text)}{indent}{statement}")
    return _behind(text, record, last, end, statement)


def put_item(text: str, items: syntax.ListExpr, index: int, item: str) -> Edit:
    """Write an item of `[ … ]` before the one at `index`, or behind all."""
    if not items.items:
        return Edit(items.span, f"[{item}]")
    if index < len(items.items):
        return _insert(items, items.items[index].span.start, f"{item}, ")
    return _insert(items, items.items[-1].span.end, f", {item}")


def take_out(text: str, siblings: Sequence[syntax.Node], index: int) -> Edit:
    """Delete one of several statements or items with its comma, and with its lines where they hold nothing else."""
    span = siblings[index].span
    start, end = span.start, span.end
    line, line_end = text.rfind("\n", 0, start) + 1, _line_end(text, end)
    rest = text[end:line_end].strip()
    if not text[line:start].strip() and (rest in ("", ",") or rest.lstrip(", ").startswith("#")):
        return Edit(Span(span.file, _with_docs(text, line), min(line_end + 1, len(text))), "")
    behind = _skip(text, end, _SPACE)
    if text[behind : behind + 1] == ",":
        return Edit(Span(span.file, start, _skip(text, behind + 1, _SPACE)), "")
    if index:
        comma = text.rfind(",", siblings[index - 1].span.end, start)
        return Edit(Span(span.file, comma if comma >= 0 else siblings[index - 1].span.end, end), "")
    return Edit(Span(span.file, start, behind), "")


def _into_empty(text: str, record: syntax.Record, statement: str) -> Edit:
    """Comments between the brackets stay, and the statement stands below them."""
    start, end = record.span.start + 1, record.span.end - 1
    inside = text[start:end]
    if not inside.strip():
        return Edit(Span(record.span.file, start, end), f" {statement} ")
    before = end - len(inside) + len(inside.rstrip())
    indent = _indent(text, record.span.start) + _STEP
    return _insert(record, before, f"{_newline(text)}{indent}{statement}")


def _behind(text: str, record: syntax.Record, last: int, end: int, statement: str) -> Edit:
    """On the line of the last statement, which may end in a comma; before a comment that ends the line."""
    comma = _skip(text, last, _SPACE)
    if comma < end and text[comma] == ",":
        return _insert(record, comma + 1, f" {statement}" + ("," if text[comma + 1 : end].strip() else ""))
    return _insert(record, last, f", {statement}")


def _insert(node: syntax.Node, at: int, text: str) -> Edit:
    return Edit(Span(node.span.file, at, at), text)


def _with_docs(text: str, line: int) -> int:
    """The start of the doc and allow lines directly above a line: they speak of it alone."""
    while line:
        above = text.rfind("\n", 0, line - 1) + 1
        if not _DOC.match(text, above, line):
            break
        line = above
    return line


def _begins_line(text: str, at: int) -> bool:
    return not text[text.rfind("\n", 0, at) + 1 : at].strip()


def _indent(text: str, at: int) -> str:
    """The space at the start of the line."""
    line = text.rfind("\n", 0, at) + 1
    return text[line : _skip(text, line, _SPACE)]


def _line_end(text: str, at: int) -> int:
    found = text.find("\n", at)
    return len(text) if found < 0 else found


def _skip(text: str, at: int, chars: str) -> int:
    while at < len(text) and text[at] in chars:
        at += 1
    return at


def _newline(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"
