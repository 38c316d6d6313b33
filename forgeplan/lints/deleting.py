"""Which statements has a file, and which edit takes one out?"""

from __future__ import annotations

from collections.abc import Iterator

import attrs

from forgeplan.diagnostics.diagnostic import Edit
from forgeplan.dsl import syntax
from forgeplan.dsl.rewriting import take_out

Siblings = tuple[syntax.Item, ...]
"""The statements of one body."""


def statements(root: syntax.Node) -> Iterator[tuple[Siblings, int]]:
    """Every statement of a file, as one of those of its body."""
    stack = [root]
    while stack:
        node = stack.pop()
        stack.extend(syntax.children(node))
        siblings = tuple(child for child in syntax.children(node) if isinstance(child, syntax.Item))
        yield from ((siblings, index) for index in range(len(siblings)))


def deletion(text: str, siblings: Siblings, index: int) -> Edit:
    """Take out a statement with what is said about it; of the empty lines around it one stays."""
    edit = take_out(text, siblings, index)
    start, end = edit.span.start, edit.span.end
    if text[:start].endswith("\n\n") and text[end : end + 1] == "\n" and text[end - 1 : end] == "\n":
        return attrs.evolve(edit, span=attrs.evolve(edit.span, end=end + 1))
    return edit
