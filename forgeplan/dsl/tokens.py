"""What kinds of tokens are there, and where does each stand?"""

from __future__ import annotations

from collections.abc import Iterator

from attrs import Factory, define, field, frozen

from forgeplan.diagnostics.span import Span

_RESERVED_WORDS = "if then else for in and or not true false none self"
RESERVED = {word: word.upper() for word in _RESERVED_WORDS.split()}
"""Words that are never names, except after a dot. The kind of a token is the terminal of the grammar."""

_SOFT_WORDS = """
    forge import from as param let partial plan extends profile sweep over axis zip exclude test expect error with
    assert warn delete after
"""
SOFT = {word: word.upper() for word in _SOFT_WORDS.split()}
"""Words that are keywords only where the grammar has a place for them; elsewhere they are names."""

SOFT_KINDS = frozenset(SOFT.values())
WORDS = RESERVED | SOFT

OPERATORS = {
    "=": "EQ", "+=": "PLUSEQ", "==": "COMPARE", "!=": "COMPARE", "<": "COMPARE", "<=": "COMPARE", ">": "COMPARE",
    ">=": "COMPARE", "+": "PLUS", "-": "MINUS", "*": "TIMES", "/": "TIMES", "//": "TIMES", "%": "TIMES", "**": "POWER",
    "..": "RANGE", ".": "DOT", ",": "COMMA", ":": "COLON", "?": "OPT", "(": "LPAR", ")": "RPAR", "[": "LSQB",
    "]": "RSQB", "{": "LBRACE", "}": "RBRACE",
}  # fmt: skip

CLOSER = {"LPAR": "RPAR", "LSQB": "RSQB", "LBRACE": "RBRACE"}
OPENER = {closer: opener for opener, closer in CLOSER.items()}
SPELLING = {kind: text for text, kind in OPERATORS.items() if kind not in ("COMPARE", "TIMES")}

STRUCTURE = frozenset({"NL", "COMMA", "LBRACE"})
"""Kinds after which a statement or item begins."""


@frozen
class Token:
    kind: str
    text: str
    span: Span


@define
class Tokens:
    """Token kinds and places in parallel lists, as one object a token would cost more than reading it.

    `bad` holds the indices of tokens that stand for text already reported: what follows from them is not reported.
    """

    file: str
    text: str
    kinds: list[str] = Factory(list)
    starts: list[int] = Factory(list)
    ends: list[int] = Factory(list)
    bad: set[int] = field(default=Factory(set), kw_only=True)

    def __len__(self) -> int:
        return len(self.kinds)

    def __iter__(self) -> Iterator[Token]:
        return (Token(kind, self.word(i), self.span(i)) for i, kind in enumerate(self.kinds))

    def word(self, index: int) -> str:
        """The text of a token; the spelling of its kind where it was inserted."""
        return self.text[self.starts[index] : self.ends[index]] or SPELLING.get(self.kinds[index], "")

    def span(self, index: int) -> Span:
        return Span(self.file, self.starts[index], self.ends[index])

    def append(self, kind: str, start: int, end: int, *, bad: bool = False) -> None:
        if bad:
            self.bad.add(len(self.kinds))
        self.kinds.append(kind)
        self.starts.append(start)
        self.ends.append(end)
