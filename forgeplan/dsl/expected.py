"""How are the tokens that could stand at a place, and the one that does, called in English?"""

from __future__ import annotations

from forgeplan.dsl.tokens import SPELLING, Tokens

_GROUPS: tuple[tuple[frozenset[str], str, frozenset[str]], ...] = (
    (
        frozenset(("LET", "DELETE")),
        "a statement",
        frozenset(
            "LET DELETE PARAM ASSERT WARN PROFILE PLAN PARTIAL SWEEP AXIS ZIP EXCLUDE TEST EXPECT IMPORT FROM FORGE NAME".split()
        ),
    ),
    (
        frozenset(("NUMBER", "STRING", "TRUE")),
        "a value",
        frozenset("NUMBER STRING TRUE FALSE NONE NAME SELF LBRACE LPAR LSQB NOT MINUS PLUS IF ERROR FOR".split()),
    ),
    (
        frozenset(("PLUS", "TIMES", "POWER")),
        "an operator",
        frozenset("PLUS MINUS TIMES POWER COMPARE RANGE AND OR IN DOT LPAR LSQB LBRACE".split()),
    ),
    (frozenset(("NL",)), "the end of the statement", frozenset(("NL", "COMMA"))),
    (frozenset(("COMMA", "RBRACE")), "the end of the statement", frozenset(("NL", "COMMA"))),
)
_NAMES = {"NAME": "a name", "STRING": "a string", "NUMBER": "a number", "$END": "the end of the text", "COMPARE": "a comparison"}
_LAST = ("an operator",)
MOST = 5


def described(kinds: set[str]) -> str:
    """At most five things, the likely ones first: "`=`, `+=` or `.`"."""
    things: list[str] = []
    left = set(kinds)
    for needed, name, covered in _GROUPS:
        if needed <= left:
            things.append(name)
            left -= covered
    things = [_name(kind) for kind in sorted(left)] + things
    ordered = [t for t in things if t not in _LAST] + [t for t in things if t in _LAST]
    ordered = list(dict.fromkeys(ordered))[:MOST]
    return ordered[0] if len(ordered) == 1 else " or ".join((", ".join(ordered[:-1]), ordered[-1])) if ordered else ""


def _name(kind: str) -> str:
    return _NAMES.get(kind) or f"`{SPELLING.get(kind) or kind.lower()}`"


def found(tokens: Tokens, at: int) -> str:
    """What stands at a token."""
    kind, word = tokens.kinds[at], tokens.word(at)
    if kind in ("NL", "$END"):
        return "the end of the line" if kind == "NL" else "the end of the text"
    word = word if len(word) <= 40 else word[:40] + "…"
    if kind == "STRING":
        return f"the string {word}"
    return f"the number `{word}`" if kind == "NUMBER" else f"`{word}`"
