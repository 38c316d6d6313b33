"""Which newlines end a statement?

One does, unless it stands inside `(` or `[`, or its line cannot end there, or the next line goes on (`else`, `and`,
`.` …). The tokens that come out have one NL where a statement ends and none elsewhere, and end with NL and $END.
"""

from __future__ import annotations

from forgeplan.dsl.tokens import SOFT_KINDS, Tokens

_OPERATOR_WORDS = ("AND", "OR", "NOT", "IN", "IF", "THEN", "ELSE", "FOR")
_OPERATORS = ("PLUS", "MINUS", "TIMES", "POWER", "COMPARE", "RANGE", "DOT")
_JOINS_NEXT = frozenset(("EQ", "PLUSEQ", *_OPERATORS, *_OPERATOR_WORDS))
_NEVER_BEFORE_NL = frozenset(("NL", "COMMA", "LBRACE", "COLON", "LPAR", "LSQB", ""))
_JOINS_PREVIOUS = frozenset(
    (
        "ELSE",
        "THEN",
        "AND",
        "OR",
        "IN",
        "DOT",
        "TIMES",
        "POWER",
        "COMPARE",
        "RANGE",
        "PLUS",
        "COMMA",
        "LBRACE",
        "RBRACE",
    )
)


def layout(raw: Tokens) -> Tokens:
    """The tokens that the grammar sees. Brackets must pair up."""
    out = Tokens(raw.file, raw.text)
    kinds, starts, ends = out.kinds, out.starts, out.ends
    bad = raw.bad
    inside: list[bool] = [False]  # innermost bracket last; True where it swallows newlines
    newline = -1
    last = ""
    damaged = False  # what was left out beside a newline counts against the token that follows
    for i, kind in enumerate(raw.kinds):
        if kind == "NL":
            if newline < 0:
                newline = i
            damaged |= i in bad
            continue
        if damaged:
            out.bad.add(len(kinds))
            damaged = False
        if newline >= 0:
            if not inside[-1] and last not in _NEVER_BEFORE_NL and _ends_statement(raw, newline, i, last):
                kinds.append("NL")
                starts.append(ends[-1])
                ends.append(raw.ends[newline])
            newline = -1
        if kind == "LBRACE":
            inside.append(False)
        elif kind == "LPAR" or kind == "LSQB":
            inside.append(True)
        elif (kind == "RBRACE" or kind == "RPAR" or kind == "RSQB") and len(inside) > 1:
            inside.pop()
        if bad and i in bad:
            out.bad.add(len(kinds))
        kinds.append(kind)
        starts.append(raw.starts[i])
        ends.append(raw.ends[i])
        last = kind
    return out


def _ends_statement(raw: Tokens, newline: int, following: int, last: str) -> bool:
    kind = raw.kinds[following]
    if kind in _JOINS_PREVIOUS:
        # `// text` at the start of a line is a foreign comment, not a division.
        return kind == "TIMES" and raw.ends[following] - raw.starts[following] == 2
    return last not in _JOINS_NEXT or _begins_statement(raw, following)


def _begins_statement(raw: Tokens, at: int) -> bool:
    """`path =` or `profile name` at `at`: a statement of its own, whatever the line before lacks."""
    kinds = raw.kinds
    limit = len(kinds)
    if kinds[at] in SOFT_KINDS and at + 1 < limit and kinds[at + 1] == "NAME":
        return True
    while at + 1 < limit and kinds[at] == "NAME" and kinds[at + 1] == "DOT":
        at += 2
    return at + 1 < limit and kinds[at] == "NAME" and kinds[at + 1] in ("EQ", "PLUSEQ")


def close(tokens: Tokens, end: int) -> Tokens:
    """Add the NL of the last statement and the end of the text."""
    if tokens.kinds and tokens.kinds[-1] != "NL":
        tokens.append("NL", tokens.ends[-1], end)
    tokens.append("$END", end, end)
    return tokens
