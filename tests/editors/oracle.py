"""Which role does the language itself give to each token? Lexer and syntax tree say it, and no pattern of an editor."""

from __future__ import annotations

from collections.abc import Iterator

import attrs

from forgeplan.diagnostics.source import Source
from forgeplan.dsl import syntax
from forgeplan.dsl.lexer import lex
from forgeplan.dsl.numbers import MULTIPLIERS, read_number
from forgeplan.dsl.parser import parse
from forgeplan.dsl.strings import scan_string
from forgeplan.dsl.tokens import OPERATORS, RESERVED, SOFT_KINDS
from forgeplan.editors.rules import Role

Piece = tuple[int, int, Role]
_BRANCHES = ("IF", "THEN", "ELSE", "FOR")
_SIGNS = {
    **dict.fromkeys(("EQ", "PLUSEQ"), Role.ASSIGNMENT),
    **dict.fromkeys(("COMMA", "COLON", "OPT"), Role.SEPARATOR),
    **dict.fromkeys(("LPAR", "RPAR", "LSQB", "RSQB", "LBRACE", "RBRACE"), Role.BRACKET),
    "DOT": Role.DOT,
}


def pieces(text: str) -> list[Piece]:
    """Every token and comment of a faultless text, those inside strings too, in order: start, end, role."""
    parsed = parse(Source("plan.forge", text))
    assert parsed.diagnostics == [], [d.message for d in parsed.diagnostics]
    named: dict[int, Role] = {}
    for node in _nodes(parsed.file):
        named = dict(_named(node)) | named
        if isinstance(node, syntax.NameRef) and node.name != "self":
            named.setdefault(_behind_brackets(text, node.span.start), _of_reference(node))
    return sorted(_of_range(text, 0, len(text), named))


def _nodes(node: object) -> Iterator[syntax.Node]:
    if isinstance(node, tuple):
        for part in node:
            yield from _nodes(part)
    elif isinstance(node, syntax.Node):
        yield node
        for field in attrs.fields(type(node)):
            yield from _nodes(getattr(node, field.name))


def _named(node: syntax.Node) -> Iterator[tuple[int, Role]]:
    """Where names begin that a node gives a role. A node comes before what is in it, and the first one counts."""

    def name(role: Role, *names: syntax.Name) -> Iterator[tuple[int, Role]]:
        yield from ((n.span.start, role) for n in names)

    match node:
        case syntax.Plan(name=own, base=base):
            yield from name(Role.DECLARED, own)
            yield from name(Role.BASE, *(base.names if base else ()))
        case syntax.Sweep(name=own, base=base):
            yield from name(Role.DECLARED, own)
            yield from name(Role.BASE, *base.names)
        case syntax.Test(base=base):
            yield from name(Role.BASE, *base.names)
        case syntax.NodeDecl(kind=kind, name=own, after=after):
            yield from name(Role.KIND, kind)
            yield from name(Role.DECLARED, own)
            yield from name(Role.BASE, *(n for path in after for n in path.names))
        case syntax.Profile(name=own):
            yield from name(Role.DECLARED, own)
        case syntax.Let(name=own) | syntax.Param(name=own) | syntax.Import(name=own):
            yield from name(Role.VARIABLE, own)
        case syntax.FromImport(names=names):
            yield from name(Role.VARIABLE, *names)
        case syntax.TypeExpr(name=own):
            yield from name(Role.TYPE, own)
        case syntax.Delete(path=path) | syntax.SweepAxis(path=path):
            yield from name(Role.NAME, path.names[0])
        case syntax.Assign(path=path):
            yield from name(Role.KEY, *path.names)
        case syntax.ExpectError(code=own):
            yield from name(Role.CODE, own)
        case _:
            yield from _named_in_value(node)


def _behind_brackets(text: str, start: int) -> int:
    """Where a name begins that may stand in brackets of its own, which count as part of it."""
    while text[start] in "( \t\n":
        start += 1
    return start


def _of_reference(node: syntax.NameRef) -> Role:
    return Role.CONSTANT if node.name == "auto" else Role.NAME


def _named_in_value(node: syntax.Node) -> Iterator[tuple[int, Role]]:
    match node:
        case syntax.Number(unit=str(), unit_span=place) if place is not None:
            yield place.start, Role.UNIT
        case syntax.Call(function=syntax.NameRef(span=span)):
            yield span.start, Role.FUNCTION
        case syntax.Amend(base=syntax.NameRef(span=span)):
            yield span.start, Role.TAG
        case syntax.Amend(base=syntax.Member(name=own)):
            yield own.span.start, Role.TAG
        case _:
            return


def _of_range(text: str, start: int, end: int, named: dict[int, Role]) -> Iterator[Piece]:
    lexed = lex("plan.forge", text, start, end)
    assert lexed.diagnostics == []
    for comment in lexed.comments:
        yield from _of_comment(text, comment.span.start, comment.span.end)
    tokens, last = lexed.tokens, ""
    for kind, at, until in zip(tokens.kinds, tokens.starts, tokens.ends, strict=True):
        if kind == "NUMBER":
            yield from _of_number(text, at, until)
        elif kind == "STRING":
            yield from _of_string(text, at, until, named)
        elif kind != "NL":
            yield at, until, _of_word_or_sign(kind, at, named, last)
        last = kind


def _of_word_or_sign(kind: str, at: int, named: dict[int, Role], last: str) -> Role:
    if kind in _SIGNS or kind in OPERATORS.values():
        return _SIGNS.get(kind, Role.OPERATOR)
    if kind in RESERVED.values():
        role = Role.BRANCH if kind in _BRANCHES else Role.WORD_OPERATOR
        role = Role.CONSTANT if kind in ("TRUE", "FALSE", "NONE") else role
        return Role.SELF if kind == "SELF" else role
    if at in named:
        return named[at]
    if last == "DOT":
        return Role.MEMBER
    return Role.KEYWORD if kind in SOFT_KINDS else Role.NAME


def _of_number(text: str, at: int, until: int) -> Iterator[Piece]:
    reading = read_number(text[at:until])
    assert reading is not None
    digits = len(reading.spelling)
    for multiplier in sorted(MULTIPLIERS, key=len, reverse=True):
        if reading.unit is None and reading.spelling.endswith(multiplier):
            digits -= len(multiplier)
            break
    yield at, at + digits, Role.NUMBER
    if at + digits < until:
        yield at + digits, until, Role.UNIT


def _of_string(text: str, at: int, until: int, named: dict[int, Role]) -> Iterator[Piece]:
    """Both quotes are pieces, and what stands in `${…}`."""
    quotes = 3 if text.startswith('"""', at) else 1
    yield at, at + quotes, Role.STRING
    for begin, end in scan_string(text, at, until).expressions:
        yield begin - 2, begin, Role.EMBEDDED
        yield from _of_range(text, begin, end, named)
        yield end, end + 1, Role.EMBEDDED
    yield until - quotes, until, Role.STRING


def _of_comment(text: str, at: int, until: int) -> Iterator[Piece]:
    directive = text.find("forge: allow", at, until)
    if text.startswith("##", at):
        yield at, until, Role.DOC
    elif directive >= 0:
        yield at, directive, Role.COMMENT
        yield directive, directive + len("forge: allow"), Role.DIRECTIVE
        yield directive + len("forge: allow"), until, Role.LINT
    else:
        yield at, until, Role.COMMENT
