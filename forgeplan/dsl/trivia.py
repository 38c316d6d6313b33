"""Which comments speak about which statement? `##` lines are its doc, `# forge: allow name` lines its allowances."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from typing import Any

from forgeplan.diagnostics.span import Span
from forgeplan.dsl import syntax
from forgeplan.dsl.lexer import Comment
from forgeplan.dsl.tokens import Tokens

Attached = dict[int, dict[str, Any]]
"""By the place where a statement begins: `doc` and `allows` as its node takes them."""

_ALLOW = re.compile(r"#\s*forge:\s*allow\s+")
_LINT = re.compile(r"[\w-]+")


def attach(tokens: Tokens, comments: Sequence[Comment]) -> Attached:
    """Give each block of comment lines to the statement directly below it."""
    found: Attached = {}
    for block in _blocks(tokens.text, comments):
        if not any(c.text.startswith("##") or _ALLOW.match(c.text) for c in block):
            continue
        end = block[-1].span.end
        index = bisect_left(tokens.starts, end)
        while index < len(tokens) and tokens.kinds[index] in ("NL", "COMMA"):
            index += 1
        if index < len(tokens) and tokens.text.count("\n", end, tokens.starts[index]) == 1:
            found[tokens.starts[index]] = {"doc": _doc(block), "allows": tuple(_allows(block))}
    return found


def _blocks(text: str, comments: Sequence[Comment]) -> Iterator[list[Comment]]:
    """Comments that stand alone on consecutive lines."""
    block: list[Comment] = []
    for comment in comments:
        if not comment.alone:
            continue
        gap = text[block[-1].span.end : comment.span.start] if block else ""
        if block and (gap.count("\n") != 1 or gap.strip(" \t\r\n,")):
            yield block
            block = []
        block.append(comment)
    if block:
        yield block


def _doc(block: Sequence[Comment]) -> str:
    lines = (c.text[2:] for c in block if c.text.startswith("##"))
    return "\n".join(line.removeprefix(" ").rstrip() for line in lines)


def _allows(block: Sequence[Comment]) -> Iterator[syntax.Name]:
    for comment in block:
        allow = _ALLOW.match(comment.text)
        for lint in _LINT.finditer(comment.text, allow.end()) if allow else ():
            start = comment.span.start + lint.start()
            yield syntax.Name(lint[0], span=Span(comment.span.file, start, start + len(lint[0])))
