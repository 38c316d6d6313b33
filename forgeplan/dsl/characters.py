"""Which characters start no token, which of them only look like one that does, and which cannot be seen at all?"""

from __future__ import annotations

import re

from forgeplan.diagnostics.codes import code
from forgeplan.diagnostics.diagnostic import Diagnostic, Edit, Fix, Safety
from forgeplan.diagnostics.span import Span

FP0101 = code("FP0101", "every character starts a token")
FP0111 = code(
    "FP0111",
    "UTF-8 without NUL, bidirectional controls or invisible characters outside strings; in strings only as escapes",
)

INVISIBLE = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffc"
    "\U000e0000-\U000e007f\ud800-\udfff]+"
)

DOUBLE_QUOTES = "“”„‟«»＂″"
SINGLE_QUOTES = "'`‘’‚‛´＇′"
_SPACES = "\u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u202f\u205f\u3000"
_DASHES = "‐‑‒–—―−﹣－"
LOOK_ALIKES = {
    **dict.fromkeys(_SPACES, " "),
    **dict.fromkeys(_DASHES, "-"),
    **dict.fromkeys("×∗＊⋅·", "*"),
    "÷": "/",
    "∕": "/",
    "⁄": "/",
    "≤": "<=",
    "≥": ">=",
    "≠": "!=",
    "…": "..",
    "‥": "..",
    "；": ";",
    "∶": ":",
    **{chr(c + 0xFEE0): chr(c) for c in range(0x21, 0x7F) if chr(c) not in "\"'*-;0123456789" and not chr(c).isalpha()},
}
"""What an author meant who typed, or pasted, a character that only resembles ASCII."""

WORDS_FOR = {"&&": "and", "&": "and", "||": "or", "|": "or", "!": "not"}


def name_of(character: str) -> str:
    """`U+201C, left double quotation mark`."""
    import unicodedata

    name = unicodedata.name(character, "control character" if ord(character) < 160 else "unassigned").lower()
    return f"U+{ord(character):04X}, {name}"


def shown(character: str) -> str:
    return f"`{character}`" if character.isprintable() and not character.isspace() else "the character"


def starts_no_token(span: Span, run: str, meant: str | None, help: str, edits: tuple[Edit, ...] = ()) -> Diagnostic:
    """FP0101 for the characters `run` at `span`, of which the first is named."""
    subject = shown(run if len(run) == 1 else run[:8])
    title = f"write `{meant}`" if meant and meant.strip() else help
    fixes = Fix(title, edits, Safety.SAFE) if edits else ()
    return FP0101.at(span, f"{subject} ({name_of(run[0])}) starts no token", help=help, fixes=fixes)


def invisible_characters(file: str, text: str, start: int, end: int) -> list[Diagnostic]:
    """FP0111 for every run of characters that a reader cannot see. A byte order mark at the very start is no fault."""
    if INVISIBLE.search(text, start, end) is None:
        return []
    found = []
    for match in INVISIBLE.finditer(text, start, end):
        if match.start() == 0 and match[0] == "\ufeff":
            continue
        span = Span(file, match.start(), match.end())
        if "\ud800" <= match[0][0] <= "\udfff":
            message = "this is not UTF-8"
        else:
            message = f"an invisible character ({name_of(match[0][0])}) stands here"
        found.append(
            FP0111.at(
                span,
                message,
                help=f"delete it; inside a string write it as the escape `\\u{{{ord(match[0][0]):X}}}`",
                notes="what is displayed would differ from what is read",
                fixes=Fix("delete the invisible character", (Edit(span, ""),), Safety.ASK),
            )
        )
    return found
