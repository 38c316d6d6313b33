"""Which edits bring a document into its one form?"""

from __future__ import annotations

from difflib import SequenceMatcher

from lsprotocol import types as lsp

from forgeplan.diagnostics.refusal import InternalError
from forgeplan.diagnostics.span import Span
from forgeplan.dsl.formatter import CannotFormat, format_text
from forgeplan.lsp.snapshot import Snapshot


def formatting(snapshot: Snapshot) -> list[lsp.TextEdit]:
    """Edits of whole lines, so that cursors and folds elsewhere stay; none for a text with syntax errors."""
    try:
        formatted = format_text(snapshot.text, snapshot.name)
    except (CannotFormat, InternalError):
        return []
    before, after = snapshot.text.splitlines(keepends=True), formatted.splitlines(keepends=True)
    starts = [0]
    for line in before:
        starts.append(starts[-1] + len(line))
    edits = []
    for kind, a, b, c, d in SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        if kind != "equal":
            span = Span(snapshot.name, starts[a], starts[b])
            edits.append(lsp.TextEdit(snapshot.range(span), "".join(after[c:d])))
    return edits
