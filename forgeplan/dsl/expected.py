"""How are the tokens that could stand at a place, and the one that does, called in English?"""

from __future__ import annotations

from forgeplan.dsl.tokens import SPELLING, Tokens

_STATEMENTS = """
    LET DELETE PARAM ASSERT WARN PROFILE PLAN PARTIAL SWEEP AXIS ZIP EXCLUDE TEST EXPECT IMPORT FROM FORGE NAME $END
"""
_VALUES = "NUMBER STRING TRUE FALSE NONE NAME SELF LBRACE LPAR LSQB NOT MINUS PLUS IF ERROR FOR"
_OPERATORS = "PLUS MINUS TIMES POWER COMPARE RANGE AND OR IN DOT LPAR LSQB LBRACE"

_GROUPS: tuple[tuple[str, str, str], ...] = (
    ("LET DELETE", "a statement", _STATEMENTS),
    ("NUMBER STRING TRUE", "a value", _VALUES),
    ("PLUS TIMES POWER", "an operator", _OPERATORS),
    ("NL", "the end of the statement", "NL COMMA RBRACE"),
    ("COMMA RBRACE", "the end of the statement", "COMMA RBRACE"),
)
"""If the first kinds may all come, the kinds of the last column are summed up in one phrase."""

_NAMES = {
    "NAME": "a name",
    "STRING": "a string",
    "NUMBER": "a number",
    "$END": "the end of the text",
    "COMPARE": "a comparison",
}
_LIKELY_FIRST = ("`=`", "a name", "a value", "a statement", "`{`", "`,`", "the end of the statement")
_UNLIKELY = ("`.`", "`+=`", "`?`", "an operator")
_MOST = 5


def described(kinds: set[str]) -> str:
    """At most five things, the likely ones first: "`=`, a name or `.`"."""
    things: list[str] = []
    left = set(kinds)
    for needed, phrase, covered in _GROUPS:
        if left.issuperset(needed.split()):
            things.append(phrase)
            left -= set(covered.split())
    things += [_NAMES.get(kind) or f"`{SPELLING.get(kind) or kind.lower()}`" for kind in sorted(left)]
    ordered = sorted(things, key=_rank)[:_MOST]
    return " or ".join(filter(None, (", ".join(ordered[:-1]), *ordered[-1:])))


def _rank(thing: str) -> int:
    if thing in _LIKELY_FIRST:
        return _LIKELY_FIRST.index(thing)
    return 10 + (_UNLIKELY.index(thing) + 10 if thing in _UNLIKELY else 0)


def found(tokens: Tokens, at: int) -> str:
    """What stands at a token."""
    kind, word = tokens.kinds[at], tokens.word(at)
    if kind in ("NL", "$END"):
        return "the end of the line" if kind == "NL" else "the end of the text"
    word = word if len(word) <= 40 else word[:40] + "…"
    if kind == "STRING":
        return f"the string {word}"
    return f"the number `{word}`" if kind == "NUMBER" else f"`{word}`"
