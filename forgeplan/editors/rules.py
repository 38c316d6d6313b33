"""Which text plays which role in a plan file? One table, from which the grammars of editors are made.

Patterns are in the part of regular expressions that Python and Oniguruma have in common, and never span lines. They
know a statement by its first words, not by a parse, so that they hold in a file that is half written.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum

from attrs import frozen

from forgeplan.editors import words


class Role(Enum):
    """What a piece of text is for a reader."""

    COMMENT = "comment"
    DOC = "doc comment"
    DIRECTIVE = "`forge: allow` in a comment"
    LINT = "the lints it names"
    STRING = "string"
    ESCAPE = "escape"
    EMBEDDED = "`${` and `}`"
    NUMBER = "number"
    UNIT = "multiplier or unit"
    KEYWORD = "word of a statement"
    BRANCH = "if then else for"
    WORD_OPERATOR = "and or not in"
    CONSTANT = "true false none auto"
    SELF = "self"
    KIND = "kind of a node"
    DECLARED = "name of a plan, profile, sweep or node"
    VARIABLE = "name of a let, param or import"
    BASE = "plan that another builds on"
    KEY = "field that is set"
    TAG = "component, or value that is amended"
    TYPE = "type of a param"
    FUNCTION = "function"
    MEMBER = "name behind a dot"
    NAME = "any other name"
    CODE = "code of a diagnostic"
    ASSIGNMENT = "= +="
    OPERATOR = "operator"
    DOT = "."
    SEPARATOR = ", : ?"
    BRACKET = "bracket"
    ILLEGAL = "what is not of the language"


@frozen
class Names:
    """Several names of one role with dots and commas between them, such as what is imported from a file."""

    role: Role


@frozen
class Rule:
    """`roles` are those of the groups, or of the whole match where the pattern has none. `around` is of all of it."""

    pattern: str
    roles: tuple[Role | Names, ...]
    around: Role | None = None


@frozen
class Region:
    """From `begin` to `end`, with what may stand `inside`, by name. `edge` is the role of both ends."""

    begin: str
    end: str
    edge: Role
    inside: tuple[str, ...]
    content: Role | None = None


def _any(words_: Iterable[str]) -> str:
    """One of some words, the longest first, so that `M` does not hide `MiB`."""
    return "(?:" + "|".join(sorted(words_, key=lambda w: (-len(w), w))) + ")"


_NAME = r"[A-Za-z_]\w*"
_PATH = rf"{_NAME}(?:\.{_NAME})*"
_GAP = r"[ \t]+"
_START = r"(?:^|(?<=[{,]))[ \t]*"
_FOLLOWS = {
    words.NAME: rf"(?={_GAP}[A-Za-z_])",
    words.TEXT: r'(?=[ \t]*")',
    words.NUMBER: r"(?=[ \t]+\d)",
    words.BODY: r"(?=[ \t]*\{)",
    words.VALUE: r'(?=[ \t]*(?:[\w({"\[]|[+-](?!=)))',
}
_NOT_RESERVED = rf"(?!{_any((*words.BRANCHES, *words.WORD_OPERATORS))}\b)"
_DIGITS = r"(?<!\w)((?:0|[1-9]\d*(?:_\d+)*)(?:\.\d+(?:_\d+)*)?(?:[eE][+-]?\d+)?)"
_NUMBER_ENDS = r"(?!\w|\.(?!\.))"
_NO_MEMBER = r"(?:(?<=\.\.)|(?<!\.))\b"
"""Behind a dot every word is a name, and behind two dots it is not."""

_K, _D, _V, _BASES = Role.KEYWORD, Role.DECLARED, Role.VARIABLE, Names(Role.BASE)


def _leaders() -> Iterable[Rule]:
    for word, follows in words.LEADERS.items():
        yield Rule(rf"{_START}({word}){_FOLLOWS[follows]}", (_K,))


_STATEMENTS = (
    Rule(rf"{_START}(partial){_GAP}(plan){_GAP}({_NAME})(?:{_GAP}(extends){_GAP}({_PATH}))?", (_K, _K, _D, _K, _BASES)),
    Rule(rf"{_START}(plan){_GAP}({_NAME})(?:{_GAP}(extends){_GAP}({_PATH}))?", (_K, _D, _K, _BASES)),
    Rule(rf"{_START}(sweep){_GAP}({_NAME}){_GAP}(over){_GAP}({_PATH})", (_K, _D, _K, _BASES)),
    Rule(rf"{_START}(profile){_GAP}({_NAME})", (_K, _D)),
    Rule(
        rf"{_START}(let|param){_GAP}({_NAME})(?:[ \t]*(:)[ \t]*({_NAME}))?", (_K, _V, Role.SEPARATOR, Role.TYPE)
    ),
    Rule(rf"{_START}(expect){_GAP}(error){_GAP}({_NAME})(?:{_GAP}(with)\b)?", (_K, _K, Role.CODE, _K)),
    Rule(rf'(?<=")[ \t]*(as){_GAP}({_NAME})', (_K, _V)),
    Rule(rf'(?<=")[ \t]*(import){_GAP}({_NAME}(?:[ \t]*,[ \t]*{_NAME})*)', (_K, Names(_V))),
    Rule(rf'(?<=")[ \t]*(for){_GAP}({_PATH})(?=[ \t]*\{{)', (Role.BRANCH, _BASES)),
    *_leaders(),
    Rule(
        rf"{_START}{_NOT_RESERVED}({_NAME}){_GAP}{_NOT_RESERVED}({_NAME}){_GAP}(after){_GAP}"
        rf"({_PATH}(?:[ \t]*,[ \t]*{_PATH})*)(?=[ \t]*\{{)",
        (Role.KIND, _D, _K, _BASES),
    ),
    Rule(rf"{_START}{_NOT_RESERVED}({_NAME}){_GAP}{_NOT_RESERVED}({_NAME})(?=[ \t]*\{{)", (Role.KIND, _D)),
)  # fmt: skip

_VALUES = (
    Rule(rf"\b({_NAME})(?=(?:\.{_NAME})*[ \t]*(?:\+=|=(?!=)))", (Role.KEY,)),
    Rule(
        rf"{_DIGITS}(%|{_any(words.SUFFIXES)})?{_NUMBER_ENDS}(?:{_GAP}({_any(words.UNIT_WORDS)})\b)?",
        (Role.NUMBER, Role.UNIT, Role.UNIT),
    ),
    Rule(rf"{_DIGITS}((?![eE](?![A-Za-z]))[A-Za-z]+(?:/s)?){_NUMBER_ENDS}", (Role.NUMBER, Role.ILLEGAL)),
    Rule(r"(?<!\w)(?:(?<!\.)\.(?=\d))?\d(?:\w|\.(?!\.)|(?<=[\d_][eE])[+-](?=\d))*%?", (Role.ILLEGAL,)),
    Rule(rf"{_NO_MEMBER}{_any(words.CONSTANTS)}\b(?![ \t]*[({{])", (Role.CONSTANT,)),
    Rule(rf"{_NO_MEMBER}{words.SELF}\b", (Role.SELF,)),
    Rule(rf"{_NO_MEMBER}{_any(words.WORD_OPERATORS)}\b", (Role.WORD_OPERATOR,)),
    Rule(rf"{_NO_MEMBER}{_any(words.BRANCHES)}\b", (Role.BRANCH,)),
    Rule(rf"{_NO_MEMBER}{_any(words.FUNCTIONS)}(?=[ \t]*\()", (Role.FUNCTION,)),
    Rule(rf"{_NO_MEMBER}{_any(words.TYPES)}\b", (Role.TYPE,)),
    Rule(rf"\b{_NAME}(?=[ \t]*\{{)", (Role.TAG,)),
    Rule(rf"(?<=\.)(?<!\.\.){_NAME}", (Role.MEMBER,)),
    Rule(rf"\b{_NAME}", (Role.NAME,)),
)
_SIGNS = (
    Rule(r"\.\.|\*\*|//|[=!<>]=|[-*/%<>]|\+(?!=)", (Role.OPERATOR,)),
    Rule(r"\+?=", (Role.ASSIGNMENT,)),
    Rule(r"\.", (Role.DOT,)),
    Rule(r"[,:?]", (Role.SEPARATOR,)),
    Rule(r"[()\[\]]", (Role.BRACKET,)),
    Rule(r"[^\s\w\"{}]", (Role.ILLEGAL,)),
)

RULES: dict[str, tuple[Rule, ...]] = {
    "comments": (
        Rule(r"(#[ \t]*)(forge:[ \t]*allow)\b(.*)$", (Role.COMMENT, Role.DIRECTIVE, Role.LINT), around=Role.COMMENT),
        Rule(r"##.*$", (Role.DOC,)),
        Rule(r"#.*$", (Role.COMMENT,)),
    ),
    "statements": _STATEMENTS,
    "values": _VALUES,
    "signs": _SIGNS,
    "braces": (Rule(r"[{}]", (Role.BRACKET,)),),
    "escapes": (
        Rule(r'\\(?:[ntr"\\$]|u\{[0-9A-Fa-f]{1,6}\})', (Role.ESCAPE,)),
        Rule(r"\\.", (Role.ILLEGAL,)),
    ),
}
_CODE = ("comments", "block_string", "line_string", "statements", "values", "signs")
REGIONS: dict[str, Region] = {
    "block_string": Region('"""', '"""', Role.STRING, ("escapes", "interpolation"), content=Role.STRING),
    "line_string": Region('"', '"|$', Role.STRING, ("escapes", "line_interpolation"), content=Role.STRING),
    "interpolation": Region(r"\$\{", r"\}", Role.EMBEDDED, ("record", *_CODE)),
    "line_interpolation": Region(r"\$\{", r"\}|$", Role.EMBEDDED, ("line_record", *_CODE)),
    "record": Region(r"\{", r"\}", Role.BRACKET, ("record", *_CODE)),
    "line_record": Region(r"\{", r"\}|$", Role.BRACKET, ("line_record", *_CODE)),
}
"""Strings, and the code in them, where braces are counted. A string of one line ends with it, closed or not."""

FILE = (*_CODE, "braces")
"""What a whole file consists of. Its braces are not counted: a missing one colours nothing else."""
