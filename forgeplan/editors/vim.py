"""How does the table of roles read as a syntax file of Vim?

Vim has no groups of a match with names of their own: it chains matches by `nextgroup` instead. So its patterns are its
own, the words in them the language's. A group is named after its role; where one role needs several groups, more
follows behind `_`.
"""

from __future__ import annotations

from collections.abc import Iterable

from forgeplan.editors import words
from forgeplan.editors.rules import Role

_LINKS = {
    Role.COMMENT: "Comment",
    Role.DOC: "SpecialComment",
    Role.DIRECTIVE: "PreProc",
    Role.LINT: "Tag",
    Role.STRING: "String",
    Role.ESCAPE: "SpecialChar",
    Role.EMBEDDED: "Delimiter",
    Role.NUMBER: "Number",
    Role.UNIT: "Type",
    Role.KEYWORD: "Keyword",
    Role.BRANCH: "Conditional",
    Role.WORD_OPERATOR: "Operator",
    Role.CONSTANT: "Constant",
    Role.SELF: "Special",
    Role.KIND: "StorageClass",
    Role.DECLARED: "Function",
    Role.VARIABLE: "Identifier",
    Role.BASE: "Include",
    Role.KEY: "Identifier",
    Role.TAG: "Structure",
    Role.TYPE: "Type",
    Role.FUNCTION: "Function",
    Role.CODE: "Constant",
    Role.ASSIGNMENT: "Operator",
    Role.OPERATOR: "Operator",
    Role.DOT: "Delimiter",
    Role.SEPARATOR: "Delimiter",
    Role.BRACKET: "Delimiter",
    Role.ILLEGAL: "Error",
}
"""The groups that colour schemes know. Names and members keep the colour of text."""


def group(role: Role) -> str:
    """`forgeWordOperator`."""
    return "forge" + role.name.title().replace("_", "")


def _any(words_: Iterable[str]) -> str:
    return "%(" + "|".join(sorted((w.replace("/", r"\/") for w in words_), key=lambda w: (-len(w), w))) + ")"


def _leading(follows: str) -> str:
    return _any(word for word, what in words.LEADERS.items() if what == follows)


_START = r"%(^|[{,]@1<=)\s*\zs"
_PATH = r"\h\w*%(\.\h\w*)*"
_NOT_RESERVED = rf"%({_any((*words.BRANCHES, *words.WORD_OPERATORS))}>)@!"
_NO_MEMBER = r"%(%(\.\.)@2<=|\.@1<!)<"
_DIGITS = r"%(0|[1-9]\d*%(_\d+)*)%(\.\d+%(_\d+)*)?%([eE][+-]?\d+)?"
_SUFFIX = rf"%(\%|{_any(words.SUFFIXES)})"

_NAMES = rf"""
syntax match forgeIllegal /\v[^[:space:][:alnum:]_"{{}}]/
syntax match forgeOperator /\v\.\.|\*\*|\/\/|[=!<>]\=|[-*\/%<>]|\+\=@!/
syntax match forgeAssignment /\v\+?\=\=@!/
syntax match forgeDot /\v\.@1<!\.\.@!/
syntax match forgeSeparator /[,:?]/
syntax match forgeBracket /[][(){{}}]/

syntax match forgeName /\v<\h\w*/
syntax match forgeMember /\v\.@1<=%(\.\.)@2<!\h\w*/
syntax match forgeTag /\v<\h\w*\ze\s*\{{/
syntax match forgeType /\v{_NO_MEMBER}{_any(words.TYPES)}>/
syntax match forgeFunction /\v{_NO_MEMBER}{_any(words.FUNCTIONS)}\ze\s*\(/
syntax match forgeBranch /\v{_NO_MEMBER}{_any(words.BRANCHES)}>/
syntax match forgeWordOperator /\v{_NO_MEMBER}{_any(words.WORD_OPERATORS)}>/
syntax match forgeSelf /\v{_NO_MEMBER}{words.SELF}>/
syntax match forgeConstant /\v{_NO_MEMBER}{_any(words.CONSTANTS)}>%(\s*[({{])@!/
"""

_NUMBERS = rf"""
syntax match forgeIllegal /\v\w@1<!%(\.@1<!\.\d@=)?\d%(\w|\.\.@!|%([0-9_][eE])@2<=[+-]\d@=)*\%?/
syntax match forgeNumber /\v\w@1<!{_DIGITS}\ze{_SUFFIX}?%(\w|\.\.@!)@!/ nextgroup=forgeUnit,forgeUnit_word skipwhite
syntax match forgeUnit /\v\w@1<={_SUFFIX}/ contained nextgroup=forgeUnit_word skipwhite
syntax match forgeUnit_word /\v<{_any(words.UNIT_WORDS)}>/ contained
"""

_STATEMENTS = rf"""
syntax match forgeKey /\v<\h\w*\ze%(\.\h\w*)*\s*%(\+\=|\=\=@!)/

syntax match forgeKind /\v{_START}{_NOT_RESERVED}\h\w*\ze\s+{_NOT_RESERVED}\h\w*%(\s*\{{|\s+after>)/
    \ nextgroup=forgeDeclared skipwhite
syntax match forgeKeyword /\v{_START}{_leading(words.NAME)}\ze\s+\h/
syntax match forgeKeyword /\v{_START}{_leading(words.TEXT)}\ze\s*"/
syntax match forgeKeyword /\v{_START}{_leading(words.NUMBER)}\ze\s+\d/
syntax match forgeKeyword /\v{_START}{_leading(words.BODY)}\ze\s*\{{/
syntax match forgeKeyword /\v{_START}{_leading(words.VALUE)}\ze\s*%([[:alnum:]_({{"\[]|[+-]\=@!)/

syntax match forgeKeyword /\v{_START}%(plan|profile|sweep)\ze\s+\h/ nextgroup=forgeDeclared skipwhite
syntax match forgeKeyword /\v{_START}partial\ze\s+\h/ nextgroup=forgeKeyword_plan skipwhite
syntax match forgeKeyword_plan /\v<plan\ze\s+\h/ contained nextgroup=forgeDeclared skipwhite
syntax match forgeDeclared /\h\w*/ contained nextgroup=forgeKeyword_base skipwhite
syntax match forgeKeyword_base /\v<%(extends|over|after)\ze\s+\h/ contained nextgroup=forgeBase skipwhite
syntax match forgeBase /\h\w*/ contained nextgroup=forgeDot_base,forgeSeparator_base skipwhite
syntax match forgeDot_base /\./ contained nextgroup=forgeBase
syntax match forgeSeparator_base /,/ contained nextgroup=forgeBase skipwhite
syntax match forgeBranch /\v"@1<=\s*\zsfor\ze\s+{_PATH}\s*\{{/ nextgroup=forgeBase skipwhite

syntax match forgeKeyword /\v{_START}%(let|param)\ze\s+\h/ nextgroup=forgeVariable skipwhite
syntax match forgeVariable /\h\w*/ contained nextgroup=forgeSeparator_type skipwhite
syntax match forgeSeparator_type /:/ contained nextgroup=forgeType_declared skipwhite
syntax match forgeType_declared /\h\w*/ contained
syntax match forgeKeyword /\v"@1<=\s*\zsas\ze\s+\h/ nextgroup=forgeVariable_imported skipwhite
syntax match forgeKeyword /\v"@1<=\s*\zsimport\ze\s+\h/ nextgroup=forgeVariable_imported skipwhite
syntax match forgeVariable_imported /\h\w*/ contained nextgroup=forgeSeparator_imported skipwhite
syntax match forgeSeparator_imported /,/ contained nextgroup=forgeVariable_imported skipwhite skipnl

syntax match forgeKeyword /\v{_START}expect\ze\s+error\s+\h/ nextgroup=forgeKeyword_error skipwhite
syntax match forgeKeyword_error /error/ contained nextgroup=forgeCode skipwhite
syntax match forgeCode /\h\w*/ contained nextgroup=forgeKeyword_with skipwhite
syntax match forgeKeyword_with /\v<with>/ contained
"""

_TEXTS = r"""
syntax match forgeComment /#.*$/ contains=@Spell
syntax match forgeDoc /##.*$/ contains=@Spell
syntax match forgeComment /\v#\s*forge:\s*allow>.*$/ contains=forgeDirective
syntax match forgeDirective /\vforge:\s*allow/ contained nextgroup=forgeLint
syntax match forgeLint /.*$/ contained

syntax match forgeIllegal_escape /\\./ contained
syntax match forgeEscape /\v\\%([ntr"\\$]|u\{\x{1,6}\})/ contained
syntax region forgeString matchgroup=forgeString start=/"/ end=/"/ end=/$/
    \ contains=forgeIllegal_escape,forgeEscape,forgeEmbedded_line,@Spell
syntax region forgeString matchgroup=forgeString start=/\"""/ end=/\"""/
    \ contains=forgeIllegal_escape,forgeEscape,forgeEmbedded_block,@Spell

" Code in strings: braces in it are counted, and code in a string of one line ends with the line.
syntax region forgeEmbedded_line matchgroup=forgeEmbedded start=/\${/ end=/}/ end=/$/ contained
    \ contains=@forgeCode,forgeRecord_line
syntax region forgeEmbedded_block matchgroup=forgeEmbedded start=/\${/ end=/}/ contained
    \ contains=@forgeCode,forgeRecord_block
syntax region forgeRecord_line matchgroup=forgeBracket start=/{/ end=/}/ end=/$/ contained
    \ contains=@forgeCode,forgeRecord_line
syntax region forgeRecord_block matchgroup=forgeBracket start=/{/ end=/}/ contained
    \ contains=@forgeCode,forgeRecord_block
"""


def text() -> str:
    """The file `grammar/vim/syntax/forge.vim`."""
    links = "\n".join(f"highlight default link {group(role)} {link}" for role, link in _LINKS.items())
    further = "\n".join(f"highlight default link {name} {name.partition('_')[0]}" for name in _groups() if "_" in name)
    return f"""" Syntax of Forge plan files. Made by python -m forgeplan.editors from the words of the language.

if exists("b:current_syntax")
  finish
endif

syntax case match
syntax sync minlines=200
{_NAMES}{_NUMBERS}{_STATEMENTS}{_TEXTS}
syntax cluster forgeCode contains={",".join(_groups(anywhere=True))}

{links}
{further}

let b:current_syntax = "forge"
"""


def _groups(*, anywhere: bool = False) -> list[str]:
    """Every group that is defined, in order; only those that stand on their own if `anywhere`."""
    lines = (_NAMES + _NUMBERS + _STATEMENTS + _TEXTS).replace("\n    \\", "").splitlines()
    items = [line.split() for line in lines if line.startswith("syntax ")]
    return list(dict.fromkeys(words[2] for words in items if not (anywhere and "contained" in words)))
