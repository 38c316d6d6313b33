"""How does Pygments colour plan files? With the same table of roles as the other editors, and tokens of its own names.

Pygments finds the lexer by its entry point as `forge`. Nothing else of forgeplan imports Pygments.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import ClassVar

from pygments import token as t
from pygments.lexer import LexerContext, RegexLexer, include

from forgeplan.editors.rules import FILE, REGIONS, RULES, Names, Region, Role, Rule

TOKENS = {
    Role.COMMENT: t.Comment.Single,
    Role.DOC: t.String.Doc,
    Role.DIRECTIVE: t.Comment.Preproc,
    Role.LINT: t.Comment.Special,
    Role.STRING: t.String.Double,
    Role.ESCAPE: t.String.Escape,
    Role.EMBEDDED: t.String.Interpol,
    Role.NUMBER: t.Number,
    Role.UNIT: t.Keyword.Type,
    Role.KEYWORD: t.Keyword.Declaration,
    Role.BRANCH: t.Keyword,
    Role.WORD_OPERATOR: t.Operator.Word,
    Role.CONSTANT: t.Keyword.Constant,
    Role.SELF: t.Name.Builtin.Pseudo,
    Role.KIND: t.Keyword.Reserved,
    Role.DECLARED: t.Name.Function,
    Role.VARIABLE: t.Name.Constant,
    Role.BASE: t.Name.Namespace,
    Role.KEY: t.Name.Attribute,
    Role.TAG: t.Name.Class,
    Role.TYPE: t.Name.Builtin,
    Role.FUNCTION: t.Name.Function.Magic,
    Role.MEMBER: t.Name.Property,
    Role.NAME: t.Name,
    Role.CODE: t.Name.Exception,
    Role.ASSIGNMENT: t.Operator.Assignment,
    Role.OPERATOR: t.Operator,
    Role.DOT: t.Punctuation.Accessor,
    Role.SEPARATOR: t.Punctuation,
    Role.BRACKET: t.Punctuation.Bracket,
    Role.ILLEGAL: t.Error,
}
"""Every role has a token of its own, under one that styles know."""

_Found = Iterator[tuple[int, "t._TokenType", str]]
_NAMES = re.compile(r"(\w+)|(\.)|(,)|\s+")


def _callback(rule: Rule) -> Callable[[RegexLexer, re.Match[str], LexerContext | None], _Found]:
    """The groups of a match as tokens, and what is between them as what surrounds it."""
    around = TOKENS[rule.around] if rule.around else t.Whitespace

    def found(lexer: RegexLexer, match: re.Match[str], context: LexerContext | None = None) -> _Found:
        at = match.start()
        for group, role in enumerate(rule.roles, start=1):
            start, end = match.span(group)
            if start < 0:
                continue
            if at < start:
                yield at, around, match.string[at:start]
            yield from _group(match.string, start, end, role)
            at = end
        if at < match.end():
            yield at, around, match.string[at : match.end()]

    return found


def _group(text: str, start: int, end: int, role: Role | Names) -> _Found:
    if isinstance(role, Role):
        yield start, TOKENS[role], text[start:end]
        return
    kinds = (t.Whitespace, TOKENS[role.role], TOKENS[Role.DOT], TOKENS[Role.SEPARATOR])
    for part in _NAMES.finditer(text, start, end):
        yield part.start(), kinds[part.lastindex or 0], part[0]


def _rule(rule: Rule) -> tuple[object, ...]:
    if re.compile(rule.pattern).groups:
        return rule.pattern, _callback(rule)
    (role,) = rule.roles
    assert isinstance(role, Role)
    return rule.pattern, TOKENS[role]


def _contents(names: tuple[str, ...]) -> Iterator[object]:
    """What may stand in a place. Space comes last, as patterns of statements begin with that of their line."""
    for name in names:
        if name in REGIONS:
            region = REGIONS[name]
            yield region.begin, TOKENS[region.edge], name
        else:
            yield include(name)


def _region(region: Region) -> list[object]:
    rest = (r'[^"\\$\n]+|[\s\S]', TOKENS[region.content]) if region.content else include("rest")
    return [(region.end, TOKENS[region.edge], "#pop"), *_contents(region.inside), rest]


class ForgeLexer(RegexLexer):  # type: ignore[misc]
    """Plan files of forgeplan."""

    name = "Forge plan"
    aliases: ClassVar[list[str]] = ["forge"]
    filenames: ClassVar[list[str]] = ["*.forge"]
    mimetypes: ClassVar[list[str]] = ["text/x-forge"]
    flags = re.MULTILINE

    tokens: ClassVar[dict[str, list[object]]] = {
        "root": [*_contents(FILE), include("rest")],
        "rest": [(r"\n|[^\S\n]+", t.Whitespace), (r"[\s\S]", t.Error)],
        **{name: [_rule(rule) for rule in rules] for name, rules in RULES.items()},
        **{name: _region(region) for name, region in REGIONS.items()},
    }
