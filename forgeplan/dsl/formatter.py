"""What is the canonical form of a plan text? One form, no options: 100 columns, two spaces, neighbouring `=` aligned.

Before a formatted text is given out it is read again: it must mean the same, hold the same comments, and be its own
form.
"""

from __future__ import annotations

from forgeplan.diagnostics.diagnostic import Diagnostic
from forgeplan.diagnostics.refusal import InternalError
from forgeplan.diagnostics.source import Source
from forgeplan.dsl.formatter_lines import entry_lines
from forgeplan.dsl.formatter_tree import Entry, Word, tree
from forgeplan.dsl.layout import layout
from forgeplan.dsl.lexer import lex
from forgeplan.dsl.parser import Parsed, parse

_SINGULAR = {"sequences": "sequence", "steps": "step"}
_BLOCKS = frozenset(("PLAN", "PARTIAL", "SWEEP", "TEST"))


class CannotFormat(Exception):
    """The text has syntax errors; `diagnostics` names them. It is left as it is."""

    def __init__(self, diagnostics: list[Diagnostic]) -> None:
        super().__init__(f"{len(diagnostics)} syntax errors")
        self.diagnostics = diagnostics


def format_text(text: str, name: str = "<text>") -> str:
    """The canonical form of a plan text.

    Raises CannotFormat for a text with syntax errors, InternalError if formatting would change the meaning, lose a
    comment, or not be stable. `name` is what diagnostics call the text.
    """
    before = parse(Source(name, text))
    if before.diagnostics:
        raise CannotFormat(before.diagnostics)
    singular = _singular(before)
    formatted = _formatted(singular)
    after = parse(Source(name, formatted))
    if after.diagnostics or after.file != parse(Source(name, singular)).file:
        raise InternalError(f"the formatter would change the meaning of {name}")
    if [(c.text, c.alone) for c in after.comments] != [(c.text.rstrip(), c.alone) for c in before.comments]:
        raise InternalError(f"the formatter would lose or move a comment of {name}")
    if _formatted(formatted) != formatted:
        raise InternalError(f"formatting {name} twice would give another text")
    return formatted


def _singular(parsed: Parsed) -> str:
    """The text with `1 sequence` for `1 sequences`, and likewise for steps."""
    tokens, at = layout(parsed.raw), 0
    pieces: list[str] = []
    for i in range(len(tokens) - 1):
        if tokens.kinds[i] == "NUMBER" and tokens.kinds[i + 1] == "NAME" and tokens.word(i) == "1":
            word = tokens.word(i + 1)
            if word in _SINGULAR:
                pieces += (tokens.text[at : tokens.starts[i + 1]], _SINGULAR[word])
                at = tokens.ends[i + 1]
    return "".join((*pieces, tokens.text[at:]))


def _formatted(text: str) -> str:
    entries = tree(lex("<text>", text.removeprefix("\ufeff").replace("\r\n", "\n")))
    _separate_blocks(entries)
    return "\n".join(entry_lines(entries, 0, "", False)) + "\n" if entries else ""


def _separate_blocks(entries: list[Entry]) -> None:
    """An empty line behind the edition and around plans, sweeps and tests, above the comments that belong to them."""
    for i, entry in enumerate(entries):
        previous = next((e for e in reversed(entries[:i]) if e.parts), None)
        if not entry.parts or previous is None:
            continue
        if _first(entry) in _BLOCKS or _first(previous) in (*_BLOCKS, "FORGE"):
            top = i
            while not entries[top].blank and entries[top - 1].comment:
                top -= 1
            entries[top].blank = True


def _first(entry: Entry) -> str:
    first = entry.parts[0]
    return first.kind if isinstance(first, Word) else ""
