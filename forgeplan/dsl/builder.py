"""Which tree node does each rule of the grammar make? One method per rule alias, called with the values of its parts.

The value of a token is its index; the value of a list rule is a list; the value of any other rule is a node.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import attrs
from attrs import frozen

from forgeplan.diagnostics.codes import code
from forgeplan.diagnostics.diagnostic import Diagnostic, Edit, Fix, Label, Safety
from forgeplan.diagnostics.span import Span
from forgeplan.diagnostics.suggest import did_you_mean
from forgeplan.dsl import syntax
from forgeplan.dsl.depth import MAX_OPERATORS, SUSPICIOUS_LENGTH, SUSPICIOUS_OPERATORS, too_many_operators
from forgeplan.dsl.foreign import CONSTANTS, constant
from forgeplan.dsl.lexer import FP0102, FP0112
from forgeplan.dsl.numbers import MAX_DIGITS, canonical, read_number
from forgeplan.dsl.placement import placed
from forgeplan.dsl.precedence import fold
from forgeplan.dsl.strings import ESCAPES, scan_string, unescape
from forgeplan.dsl.tokens import Tokens
from forgeplan.dsl.trivia import Attached
from forgeplan.dsl.units import multiplier_like

FP0103 = code("FP0103", "tokens follow the grammar")
Values = list[Any]
ParseRange = Callable[[int, int], tuple[syntax.Expr, list[Diagnostic]]]


@frozen
class Edition(syntax.Item):
    """`forge N`, until the file is put together."""

    number: syntax.Expr


class Builder:
    """Builds the nodes of one token list. `parse_range` reads an expression inside a string."""

    def __init__(self, tokens: Tokens, attached: Attached, parse_range: ParseRange) -> None:
        self.tokens = tokens
        self.file = tokens.file
        self.text = tokens.text
        self.starts, self.ends = tokens.starts, tokens.ends
        self.attached = attached
        self.parse_range = parse_range
        self.diagnostics: list[Diagnostic] = []
        self.suspicious = False

    # places

    def span(self, first: int | syntax.Node, last: int | syntax.Node) -> Span:
        start = self.starts[first] if isinstance(first, int) else first.span.start
        end = self.ends[last] if isinstance(last, int) else last.span.end
        return Span(self.file, start, end)

    def token_span(self, index: int) -> Span:
        return Span(self.file, self.starts[index], self.ends[index])

    def word(self, index: int) -> str:
        return self.text[self.starts[index] : self.ends[index]]

    def name(self, index: int) -> syntax.Name:
        start, end = self.starts[index], self.ends[index]
        # A key in quotes is reported, and is the name that it quotes.
        return syntax.Name(self.text[start:end].strip('"'), span=Span(self.file, start, end))

    def path_of(self, indices: list[int]) -> syntax.Path:
        names = tuple(map(self.name, indices))
        return syntax.Path(names, span=names[0].span if len(names) == 1 else self.span(indices[0], indices[-1]))

    def about(self, start: int) -> dict[str, Any]:
        """What the comments above the statement at `start` say of it: `doc` and `allows`."""
        return self.attached.get(start) or {}

    # lists

    def no_items(self, v: Values) -> Values:
        return []

    def more_items(self, v: Values) -> Values:
        v[0].append(v[1])
        return v[0]  # type: ignore[no-any-return]

    def first(self, v: Values) -> Values:
        return v

    def further(self, v: Values) -> Values:
        v[0].append(v[2])
        return v[0]  # type: ignore[no-any-return]

    def another(self, v: Values) -> Values:
        v[0].append(v[1])
        return v[0]  # type: ignore[no-any-return]

    # file and bodies

    def start(self, v: Values) -> Values:
        return v[0]  # type: ignore[no-any-return]

    def body(self, v: Values) -> syntax.Record:
        return syntax.Record(tuple(v[1]), span=self.span(v[0], v[-1]))

    def body_with_last(self, v: Values) -> syntax.Record:
        v[1].append(v[2])
        return self.body(v)

    # statements

    def edition(self, v: Values) -> Edition:
        return Edition(self.number([v[1]]), span=self.span(v[0], v[1]), **self.about(self.starts[v[0]]))

    def import_file(self, v: Values) -> syntax.Item:
        return syntax.Import(
            self.literal(v[1]), self.name(v[3]), span=self.span(v[0], v[3]), **self.about(self.starts[v[0]])
        )

    def from_import(self, v: Values) -> syntax.Item:
        span = self.span(v[0], v[3][-1])
        return syntax.FromImport(self.literal(v[1]), tuple(map(self.name, v[3])), span=span, **self.about(span.start))

    def assign(self, v: Values) -> syntax.Item:
        path = self.path_of(v[0])
        value = v[2]
        start = path.span.start
        span = Span(self.file, start, value.span.end)
        about = self.attached.get(start)
        return syntax.Assign(path, value, span=span, **about) if about else syntax.Assign(path, value, span=span)

    def append(self, v: Values) -> syntax.Item:
        span = self.span(v[0][0], v[2])
        return syntax.Assign(self.path_of(v[0]), v[2], True, span=span, **self.about(span.start))

    def delete(self, v: Values) -> syntax.Item:
        span = self.span(v[0], v[1][-1])
        return syntax.Delete(self.path_of(v[1]), span=span, **self.about(span.start))

    def let(self, v: Values) -> syntax.Item:
        span = self.span(v[0], v[3])
        return syntax.Let(self.name(v[1]), None, v[3], span=span, **self.about(span.start))

    def typed_let(self, v: Values) -> syntax.Item:
        span = self.span(v[0], v[5])
        return syntax.Let(self.name(v[1]), v[3], v[5], span=span, **self.about(span.start))

    def param(self, v: Values) -> syntax.Item:
        span = self.span(v[0], v[-1])
        default = v[5] if len(v) > 4 else None
        return syntax.Param(self.name(v[1]), v[3], default, span=span, **self.about(span.start))

    def check(self, v: Values) -> syntax.Item:
        span = self.span(v[0], v[-1])
        otherwise = self.literal(v[3]) if len(v) > 2 else None
        warns = self.word(v[0]) == "warn"
        return syntax.Check(v[1], otherwise, warns, span=span, **self.about(span.start))

    def node(self, v: Values) -> syntax.Item:
        return self.node_after([v[0], v[1], None, [], v[2]])

    def node_after(self, v: Values) -> syntax.Item:
        span = self.span(v[0], v[4])
        after = tuple(map(self.path_of, v[3]))
        return syntax.NodeDecl(self.name(v[0]), self.name(v[1]), after, v[4], span=span, **self.about(span.start))

    def profile(self, v: Values) -> syntax.Item:
        span = self.span(v[0], v[2])
        return syntax.Profile(self.name(v[1]), v[2], span=span, **self.about(span.start))

    def plan(self, v: Values) -> syntax.Item:
        return self._plan(v[0], v[1], None, False, v[2])

    def plan_extends(self, v: Values) -> syntax.Item:
        return self._plan(v[0], v[1], v[3], False, v[4])

    def partial_plan(self, v: Values) -> syntax.Item:
        return self._plan(v[0], v[2], None, True, v[3])

    def partial_plan_extends(self, v: Values) -> syntax.Item:
        return self._plan(v[0], v[2], v[4], True, v[5])

    def _plan(self, first: int, name: int, base: list[int] | None, partial: bool, body: syntax.Record) -> syntax.Item:
        span = self.span(first, body)
        path = self.path_of(base) if base else None
        return syntax.Plan(self.name(name), path, partial, body, span=span, **self.about(span.start))

    def sweep(self, v: Values) -> syntax.Item:
        span = self.span(v[0], v[4])
        return syntax.Sweep(self.name(v[1]), self.path_of(v[3]), v[4].items, span=span, **self.about(span.start))

    def axis(self, v: Values) -> syntax.Item:
        span = self.span(v[0], v[3])
        return syntax.SweepAxis(self.path_of(v[1]), v[3], span=span, **self.about(span.start))

    def zipped(self, v: Values) -> syntax.Item:
        span = self.span(v[0], v[1])
        return syntax.Zip(v[1].items, span=span, **self.about(span.start))

    def exclude(self, v: Values) -> syntax.Item:
        span = self.span(v[0], v[1])
        return syntax.Exclude(v[1], span=span, **self.about(span.start))

    def test(self, v: Values) -> syntax.Item:
        span = self.span(v[0], v[4])
        title = self.literal(v[1])
        return syntax.Test(title, self.path_of(v[3]), v[4].items, span=span, **self.about(span.start))

    def expect(self, v: Values) -> syntax.Item:
        span = self.span(v[0], v[1])
        return syntax.Expect(v[1], span=span, **self.about(span.start))

    def expect_error(self, v: Values) -> syntax.Item:
        span = self.span(v[0], v[-1])
        overrides = v[4] if len(v) > 3 else None
        return syntax.ExpectError(self.name(v[2]), overrides, span=span, **self.about(span.start))

    # types

    def base_type(self, v: Values) -> syntax.TypeExpr:
        name = self.name(v[0])
        return syntax.TypeExpr(name, span=name.span)

    def optional_type(self, v: Values) -> syntax.TypeExpr:
        base = v[0]
        return syntax.TypeExpr(base.name, base.parameters, base.arguments, True, span=self.span(base, v[1]))

    def generic_type(self, v: Values) -> syntax.TypeExpr:
        return syntax.TypeExpr(self.name(v[0]), tuple(v[2]), span=self.span(v[0], v[3]))

    def ranged_type(self, v: Values) -> syntax.TypeExpr:
        return syntax.TypeExpr(self.name(v[0]), (), tuple(v[2]), span=self.span(v[0], v[3]))

    def generic_ranged_type(self, v: Values) -> syntax.TypeExpr:
        return syntax.TypeExpr(self.name(v[0]), tuple(v[2]), tuple(v[5]), span=self.span(v[0], v[6]))

    # expressions

    def expr(self, v: Values) -> syntax.Expr:
        value = v[0]
        return self.folded(value) if type(value) is list else value

    def folded(self, chain: Values) -> syntax.Expr:
        operators = sum(type(part) is int for part in chain)
        self.suspicious |= operators > SUSPICIOUS_OPERATORS
        if operators > MAX_OPERATORS:
            span = self.span(chain[0], chain[-1])
            self.diagnostics.append(too_many_operators(Span(span.file, span.start, span.start + 1)))
            return syntax.ErrorExpr(span=span)
        return fold(self, chain)

    def conditional(self, v: Values) -> syntax.Expr:
        self.notice_chain(v[5])
        return syntax.Conditional(v[1], v[3], v[5], span=self.span(v[0], v[5]))

    def longer_chain(self, v: Values) -> Values:
        chain: Values = v[0] if type(v[0]) is list else [v[0]]
        chain.append(v[1])
        if type(v[2]) is list:
            chain.extend(v[2])
        else:
            chain.append(v[2])
        return chain

    def prefixed(self, v: Values) -> Values:
        v[0].append(v[1])
        return v[0]  # type: ignore[no-any-return]

    def number(self, v: Values) -> syntax.Expr:
        start, end = self.starts[v[0]], self.ends[v[0]]
        spelling = self.text[start:end]
        span = Span(self.file, start, end)
        if v[0] in self.tokens.bad and self.text[start] in ".0123456789":
            spelling = (canonical(spelling) if end - start < 200 else None) or ""
            if not spelling:
                return syntax.ErrorExpr(span=span)
        reading = read_number(spelling)
        if reading is None:
            self.diagnostics.append(FP0112.at(span, f"a number written out is longer than {MAX_DIGITS:,} digits"))
            return syntax.ErrorExpr(span=span)
        if reading.unit is None:
            return syntax.Number(reading.amount, reading.spelling, span=span)
        unit_span = Span(self.file, end - len(reading.unit), end)
        return syntax.Number(reading.amount, reading.spelling, reading.unit, unit_span, span=span)

    def quantity(self, v: Values) -> syntax.Expr:
        number = self.number([v[0]])
        span = self.span(v[0], v[1])
        if not isinstance(number, syntax.Number):
            return syntax.ErrorExpr(span=span)
        if number.unit is not None:
            place = number.unit_span or number.span
            word = Label(self.token_span(v[1]), "and another")
            message = f"a number takes one unit, and here are `{number.unit}` and `{self.word(v[1])}`"
            meant = multiplier_like(number.unit)
            help = did_you_mean(f"{number.spelling}{meant} {self.word(v[1])}") if meant else ()
            fixes = (Fix(f"write `{meant}`", (Edit(place, meant),)),) if meant else ()
            self.diagnostics.append(FP0103.at(Label(place, "one unit"), message, word, help=help, fixes=fixes))
            return syntax.ErrorExpr(span=span)
        return syntax.Number(number.amount, number.spelling, self.word(v[1]), self.token_span(v[1]), span=span)

    def string(self, v: Values) -> syntax.Expr:
        if v[0] in self.tokens.bad:
            return syntax.ErrorExpr(span=self.token_span(v[0]))
        return self.literal(v[0])

    def literal(self, index: int) -> syntax.Text:
        """The text of a string token; a damaged one (reported) is taken as it stands."""
        start, end = self.starts[index], self.ends[index]
        span = Span(self.file, start, end)
        content = self.text[start + 1 : end - 1]
        if index in self.tokens.bad or self.text[start] != '"':
            return syntax.Text((content,) if content else (), span=span)
        if "\\" not in content and "${" not in content and not self.text.startswith('"""', start):
            return syntax.Text((content,) if content else (), span=span)
        return syntax.Text(tuple(self.pieces(start, end)), span=span)

    def pieces(self, start: int, end: int) -> list[str | syntax.Expr]:
        """Literal pieces and expressions of a string; a newline right behind three quotes is not part of it."""
        block = self.text.startswith('"""', start)
        at, last = (start + 3, end - 3) if block else (start + 1, end - 1)
        if block and self.text.startswith("\n", at):
            at += 1
        pieces: list[str | syntax.Expr] = []
        for code_start, code_end in scan_string(self.text, start, end).expressions:
            pieces.append(self.plain(at, code_start - 2))
            expression, diagnostics = self.parse_range(code_start, code_end)
            pieces.append(expression)
            self.diagnostics += diagnostics
            at = code_end + 1
        pieces.append(self.plain(at, last))
        return [piece for piece in pieces if piece != ""]

    def plain(self, start: int, end: int) -> str:
        text, faults = unescape(self.text, start, end)
        for fault in faults:
            span = Span(self.file, fault.start, fault.end)
            known = ", ".join(f"`\\{c}`" for c in ESCAPES)
            fix = Fix("write a plain backslash", (Edit(span, "\\" + fault.text),), Safety.ASK)
            help = f"known escapes are {known} and `\\u{{…}}`; a backslash itself is `\\\\`"
            self.diagnostics.append(FP0102.at(span, f"`{fault.text}` is not an escape", help=help, fixes=fix))
        return text

    def constant(self, v: Values) -> syntax.Expr:
        value = {"true": True, "false": False, "none": None}[self.word(v[0])]
        return syntax.Constant(value, span=self.token_span(v[0]))

    def reference(self, v: Values) -> syntax.Expr:
        start, end = self.starts[v[0]], self.ends[v[0]]
        if v[0] in self.tokens.bad:
            return syntax.ErrorExpr(span=Span(self.file, start, end))
        name = self.text[start:end]
        if name in CONSTANTS:
            value, fault = constant(name, Span(self.file, start, end))
            self.diagnostics.append(fault)
            return value
        return syntax.NameRef(name, span=Span(self.file, start, end))

    def record(self, v: Values) -> syntax.Expr:
        return self.checked(v[0])

    def checked(self, record: syntax.Record) -> syntax.Record:
        """The record with only such items as may stand in a value."""
        items = record.items
        if all(type(item) is syntax.Assign for item in items):
            return record
        kept = placed(items, "record", self.diagnostics)
        return record if all(map(operator.is_, kept, items)) else attrs.evolve(record, items=kept)

    def group(self, v: Values) -> syntax.Expr:
        return attrs.evolve(v[1], span=self.span(v[0], v[2]))  # type: ignore[no-any-return]

    def empty_list(self, v: Values) -> syntax.Expr:
        return syntax.ListExpr((), span=self.span(v[0], v[1]))

    def full_list(self, v: Values) -> syntax.Expr:
        return syntax.ListExpr(tuple(v[1]), span=self.span(v[0], v[-1]))

    def comprehension(self, v: Values) -> syntax.Expr:
        return syntax.Comprehension(self.name(v[2]), v[4], None, v[6], span=self.span(v[0], v[7]))

    def filtered_comprehension(self, v: Values) -> syntax.Expr:
        return syntax.Comprehension(self.name(v[2]), v[4], v[6], v[8], span=self.span(v[0], v[9]))

    def notice_chain(self, part: syntax.Expr) -> None:
        """Remember that a part grows long by chaining, so that its depth is measured in the end."""
        if part.span.end - part.span.start > SUSPICIOUS_LENGTH:
            self.suspicious = True

    def member(self, v: Values) -> syntax.Expr:
        self.notice_chain(v[0])
        return syntax.Member(v[0], self.name(v[2]), span=self.span(v[0], v[2]))

    def index(self, v: Values) -> syntax.Expr:
        self.notice_chain(v[0])
        return syntax.Index(v[0], v[2], span=self.span(v[0], v[3]))

    def call(self, v: Values) -> syntax.Expr:
        self.notice_chain(v[0])
        arguments = tuple(v[2]) if len(v) > 3 else ()
        return syntax.Call(v[0], arguments, span=self.span(v[0], v[-1]))

    def amend(self, v: Values) -> syntax.Expr:
        self.notice_chain(v[0])
        return syntax.Amend(v[0], self.checked(v[1]), span=self.span(v[0], v[1]))
