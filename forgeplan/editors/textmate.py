"""How does the table of roles read as a TextMate grammar?"""

from __future__ import annotations

import json
import re
from typing import Any

from forgeplan.editors.rules import FILE, REGIONS, RULES, Names, Region, Role, Rule

_NAMES = {
    Role.COMMENT: "comment.line.number-sign",
    Role.DOC: "comment.line.documentation",
    Role.DIRECTIVE: "keyword.other.directive",
    Role.LINT: "entity.name.tag.lint",
    Role.STRING: "string.quoted.double",
    Role.ESCAPE: "constant.character.escape",
    Role.EMBEDDED: "punctuation.section.embedded",
    Role.NUMBER: "constant.numeric",
    Role.UNIT: "keyword.other.unit",
    Role.KEYWORD: "keyword.other.statement",
    Role.BRANCH: "keyword.control",
    Role.WORD_OPERATOR: "keyword.operator.word",
    Role.CONSTANT: "constant.language",
    Role.SELF: "variable.language.self",
    Role.KIND: "storage.type.node",
    Role.DECLARED: "entity.name.function",
    Role.VARIABLE: "variable.other.constant",
    Role.BASE: "entity.other.inherited-class",
    Role.KEY: "support.type.property-name",
    Role.TAG: "entity.name.type",
    Role.TYPE: "support.type.primitive",
    Role.FUNCTION: "support.function",
    Role.MEMBER: "variable.other.member",
    Role.NAME: "variable.other.name",
    Role.CODE: "constant.other.code",
    Role.ASSIGNMENT: "keyword.operator.assignment",
    Role.OPERATOR: "keyword.operator.sign",
    Role.DOT: "punctuation.accessor",
    Role.SEPARATOR: "punctuation.separator",
    Role.BRACKET: "punctuation.bracket",
    Role.ILLEGAL: "invalid.illegal",
}
SCOPES = {role: f"{name}.forge" for role, name in _NAMES.items()}
"""The names of the roles, of the families that colour themes know."""

SCOPE = "source.forge"


def grammar() -> dict[str, Any]:
    """The grammar as data, as editors read it from JSON."""
    return {
        "name": "Forge plan",
        "scopeName": SCOPE,
        "fileTypes": ["forge"],
        "patterns": _includes(FILE),
        "repository": {
            **{name: {"patterns": [_rule(rule) for rule in rules]} for name, rules in RULES.items()},
            **{name: _region(region) for name, region in REGIONS.items()},
        },
    }


def text() -> str:
    """The file `grammar/forge.tmLanguage.json`."""
    return json.dumps(grammar(), indent=2, ensure_ascii=False) + "\n"


def _includes(names: tuple[str, ...]) -> list[dict[str, Any]]:
    return [{"include": f"#{name}"} for name in names]


def _rule(rule: Rule) -> dict[str, Any]:
    around = {"name": SCOPES[rule.around]} if rule.around else {}
    if not re.compile(rule.pattern).groups:
        return {"match": rule.pattern, **_capture(rule.roles[0])}
    captures = {str(i): _capture(role) for i, role in enumerate(rule.roles, start=1)}
    return {"match": rule.pattern, **around, "captures": captures}


def _capture(role: Role | Names) -> dict[str, Any]:
    if isinstance(role, Role):
        return {"name": SCOPES[role]}
    parts = {r"\w+": role.role, r"\.": Role.DOT, ",": Role.SEPARATOR}
    return {"patterns": [{"match": pattern, "name": SCOPES[part]} for pattern, part in parts.items()]}


def _region(region: Region) -> dict[str, Any]:
    edge = {"0": {"name": SCOPES[region.edge]}}
    return {
        "begin": region.begin,
        "end": region.end,
        **({"name": SCOPES[region.content]} if region.content else {}),
        "beginCaptures": edge,
        "endCaptures": edge,
        "patterns": _includes(region.inside),
    }
