"""What is wrong at a token that the grammar does not allow, and can it be mended in passing?"""

from __future__ import annotations

from collections.abc import Callable

from forgeplan.diagnostics.codes import code
from forgeplan.diagnostics.diagnostic import Diagnostic, Edit, Fix, Label, Safety
from forgeplan.diagnostics.span import Span
from forgeplan.dsl import foreign
from forgeplan.dsl.builder import FP0103
from forgeplan.dsl.expected import described, found
from forgeplan.dsl.placement import FP0106, FP0107, TOP_LEVEL, block_form, field_form
from forgeplan.dsl.site import Site, Verdict, path_at, safe
from forgeplan.dsl.tokens import SOFT_KINDS
from forgeplan.dsl.words import node_kinds

FP0105 = code("FP0105", "statements are separated by a newline or a comma")

_STATEMENT_KINDS = frozenset(SOFT_KINDS) - {"AS", "EXTENDS", "OVER", "AFTER", "ERROR", "WITH", "ZIP"}


def judge(site: Site) -> Verdict:
    """The first of the special cases that fits, else `FP0103`."""
    for case in _CASES:
        verdict = case(site)
        if verdict is not None:
            return verdict
    expected = described(site.run.expected())
    what = found(site.tokens, site.at)
    message = f"expected {expected}, found {what}" if expected else f"{what} cannot stand here"
    return Verdict(FP0103.at(site.place(), message))


# FP0105, FP0106, FP0107 ----------------------------------------------------------------------------------------------


def _two_statements(site: Site) -> Verdict | None:
    """A second statement begins on the line of the first."""
    if not site.in_body:
        return None
    if site.kind(site.at) in ("EQ", "PLUSEQ"):
        return _second_assignment(site, site.at - 1)
    if site.kind(site.at - 1) in ("LET", "PARAM") and path_at(site.tokens, site.at):
        return _second_assignment(site, site.at)
    if site.at > site.first and site.run.accepts("NL") and _begins_statement(site, site.at):
        verdict = _separate(site, site.at)
        return verdict if site.run.feed("NL", site.at) else None
    return None


def _begins_statement(site: Site, at: int) -> bool:
    """Whether the tokens from `at` look like a whole new statement, not like a stray word."""
    kind, following = site.kind(at), site.kind(at + 1)
    if path_at(site.tokens, at):
        return True
    if kind in _STATEMENT_KINDS:
        return following in ("NAME", "STRING", "NUMBER", "NOT", "LPAR") or following in SOFT_KINDS
    return kind == "NAME" and following == "NAME" and site.kind(at + 2) in ("LBRACE", "AFTER")


def _second_assignment(site: Site, second: int) -> Verdict | None:
    """The fault shows late, as `17 lr` and `17 let` read like quantities: go back to where the statement begins.

    `second` is the last name before its `=`.
    """
    run, tokens = site.run, site.tokens
    if site.kind(second) != "NAME":
        return None
    while second - 2 > site.first and site.kind(second - 1) == "DOT":
        second -= 2
    if second - 1 > site.first and site.kind(second - 1) in ("LET", "PARAM"):
        second -= 1
    if second <= site.first or not site.partial or site.kind(second - 1) in ("EQ", "PLUSEQ", "DOT"):
        return None
    states, values, count = list(run.states), list(run.values), len(run.builder.diagnostics)
    run.cut(len(run.values) - len(site.partial))
    if all(run.feed(tokens.kinds[i], i) for i in range(site.first, second)) and run.feed("NL", second):
        return _separate(site, second)
    run.states[:], run.values[:] = states, values
    del run.builder.diagnostics[count:]
    return None


def _separate(site: Site, second: int) -> Verdict:
    text, start = site.tokens.text, site.tokens.starts[site.first]
    indent = text[text.rfind("\n", 0, start) + 1 : start]
    gap = Span(site.tokens.file, site.tokens.ends[second - 1], site.tokens.starts[second])
    edit = Edit(gap, ", " if indent.strip() else "\n" + indent)
    fault = FP0105.at(
        Label(site.span(second), "the second begins here"),
        "two statements stand on one line",
        help="separate them by a newline or a comma",
        fixes=safe("separate them", edit),
    )
    return Verdict(fault, second)


def _block_without_equals(site: Site) -> Verdict | None:
    """`mesh { tp = 2 }`; `phase { … }` without a name."""
    if site.kind(site.at) != "LBRACE" or not site.in_body or not site.only_path():
        return None
    word = site.text(site.first, site.at - 1)
    if word in node_kinds():
        message = f"`{word}` declares one of several nodes, so it has a name"
        fault = FP0106.at(site.span(site.first), message, help=f"write `{word} name {{ … }}`")
        return Verdict(fault, site.at if site.run.feed("NAME", site.first) else None)
    fault = field_form(site.span(site.first, site.at - 1), word, site.gap(site.at))
    return Verdict(fault, site.at if site.run.feed("EQ", site.at) else None)


def _equals_behind_name(site: Site) -> Verdict | None:
    """`eval held_out = { … }`."""
    if site.kind(site.at) != "EQ" or site.at != site.first + 2 or site.word(site.first) not in node_kinds():
        return None
    if site.kind(site.first + 1) != "NAME" or site.kind(site.at + 1) != "LBRACE":
        return None
    span = site.span(site.at)
    return Verdict(block_form(span, site.word(site.first), site.word(site.first + 1), Edit(span, "")), site.at + 1)


def _top_level_only(site: Site) -> Verdict | None:
    """`import`, `from … import` and `forge 1` inside a body."""
    word = site.word(site.first) if site.kind(site.first) in ("IMPORT", "FROM", "FORGE") else ""
    if site.frame == "body" and word and site.kind(site.first + 1) in ("STRING", "NUMBER"):
        message = f"{TOP_LEVEL[word]} stands at the top of a file"
        return Verdict(FP0107.at(site.span(site.first), message, help="move it out of the braces"))
    return None


# FP0103 with a remedy ------------------------------------------------------------------------------------------------


def _double_equals(site: Site) -> Verdict | None:
    if site.kind(site.at) != "COMPARE" or site.word(site.at) != "==" or not site.in_body or not site.run.accepts("EQ"):
        return None
    span = site.span(site.at)
    fault = FP0103.at(span, "`==` compares; a field is set with `=`", fixes=safe("write `=`", Edit(span, "=")))
    return Verdict(fault, site.at + 1 if site.run.feed("EQ", site.at) else None)


def _missing_value(site: Site) -> Verdict | None:
    before = site.kind(site.at - 1)
    if site.at > site.first and before in ("EQ", "PLUSEQ") and site.kind(site.at) in ("NL", "COMMA", "RBRACE", "$END"):
        return Verdict(FP0103.at(site.span(site.at - 1), f"no value follows `{site.word(site.at - 1)}`"))
    return None


def _list_in_braces(site: Site) -> Verdict | None:
    """`{1, 2}`."""
    if site.at != site.first or site.kind(site.at) not in ("NUMBER", "STRING") or site.kind(site.at - 1) != "LBRACE":
        return None
    message = f"expected a field, found {found(site.tokens, site.at)}"
    return Verdict(FP0103.at(site.place(), message, help="a list stands in `[…]`"), is_guess=True)


def _list_in_parentheses(site: Site) -> Verdict | None:
    """`(0.9, 0.95)`."""
    if site.kind(site.at) != "COMMA" or not site.run.accepts("RPAR"):
        return None
    opened = _bracket(site, range(site.at - 1, site.first - 1, -1), "RPAR", "LPAR")
    closed = _bracket(site, range(site.at + 1, site.end), "LPAR", "RPAR")
    if opened is None or closed is None:
        return None
    edits = (Edit(site.span(opened), "["), Edit(site.span(closed), "]"))
    text = f"[{site.text(opened + 1, closed - 1)}]"
    fix = Fix(f"write `{text}`", edits, Safety.SAFE)
    place = site.span(opened, closed)
    return Verdict(FP0103.at(place, "a list does not stand in `(…)`", help=f"a list is `{text}`", fixes=(fix,)))


def _bracket(site: Site, indices: range, inner: str, wanted: str) -> int | None:
    """The first bracket of the wanted kind on the way that belongs to none in between."""
    depth = 0
    for i in indices:
        if site.kind(i) == wanted and depth == 0:
            return i
        depth += {inner: 1, wanted: -1}.get(site.kind(i), 0)
    return None


def _header_without_body(site: Site) -> Verdict | None:
    """`lr peak_lr` at the end of a line: `=` is missing."""
    if (
        site.at != site.first + 2
        or site.kind(site.at) not in ("NL", "COMMA", "RBRACE", "DOT", "LPAR")
        or not site.in_body
    ):
        return None
    if site.kind(site.first) != "NAME" or site.kind(site.first + 1) != "NAME":
        return None
    word, name = site.word(site.first), site.word(site.first + 1)
    if word in node_kinds():
        return Verdict(FP0103.at(site.place(), f"`{word}` needs a body: `{word} {name} {{ … }}`"))
    run = site.run
    fault = _missing(site, site.first + 1, "=")
    run.cut(len(run.values) - len(site.partial))
    for kind, index in (("NAME", site.first), ("EQ", site.first), ("NAME", site.first + 1)):
        run.feed(kind, index)
    return Verdict(fault, site.at, is_guess=True)


def _missing_sign(site: Site) -> Verdict | None:
    """`tp 2`, `let x 3`, `[a b]`: one sign is missing, and with it the text goes on well."""
    run = site.run
    for sign, text in (("EQ", "="), ("COMMA", ",")):
        if sign == "COMMA" and site.frame != "list":
            continue
        if site.at > site.first and run.accepts(sign, site.kind(site.at)):
            fault = _missing(site, site.at, text)
            return Verdict(fault, site.at if run.feed(sign, site.at) else None, is_guess=True)
    return None


def _missing(site: Site, before: int, sign: str) -> Diagnostic:
    fix = Fix(f"insert `{sign}`", (Edit(site.gap(before), f" {sign}" if sign == "=" else sign),), Safety.ASK)
    return FP0103.at(site.span(before), f"`{sign}` is missing before {found(site.tokens, before)}", fixes=fix)


_CASES: tuple[Callable[[Site], Verdict | None], ...] = (
    foreign.colon,
    foreign.quoted_key,
    foreign.line_start,
    foreign.ternary,
    _top_level_only,
    _equals_behind_name,
    _block_without_equals,
    _double_equals,
    _missing_value,
    _list_in_braces,
    _list_in_parentheses,
    _header_without_body,
    _two_statements,
    _missing_sign,
)
