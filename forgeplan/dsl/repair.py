"""Where does a missing or wrong bracket belong? Indentation says.

Only called for texts whose brackets do not pair up. Bodies are taken to be written the usual way: an opener that ends
its line is closed by a bracket that begins a line, with the indentation of the opener's line; what stands between is
indented more.
"""

from __future__ import annotations

from attrs import define, field

from forgeplan.diagnostics.codes import code
from forgeplan.diagnostics.diagnostic import Diagnostic, Edit, Fix, Label, Safety
from forgeplan.diagnostics.span import Span
from forgeplan.dsl.lexer import MAX_FAULTS
from forgeplan.dsl.tokens import CLOSER, OPENER, SOFT_KINDS, SPELLING, Tokens

FP0104 = code("FP0104", "brackets pair up; a missing one is placed by indentation")

_SEARCH = 400
"""How many tokens or lines back the place of a missing opener is looked for."""

_WANTS_MORE = frozenset(("EQ", "PLUSEQ", "DOT", "PLUS", "MINUS", "TIMES", "POWER", "COMPARE", "RANGE", "COLON"))

_VALUE_ENDS = frozenset(("NAME", "NUMBER", "STRING", "TRUE", "FALSE", "NONE", "RPAR", "RSQB", "RBRACE", "EQ"))


def repair(raw: Tokens) -> tuple[Tokens, list[Diagnostic]]:
    """The tokens with brackets put in, taken out or exchanged so that all pair up, and one fault for each change."""
    work = _Repair(raw)
    work.run()
    return _paired(work.result()), work.faults


@define
class _Open:
    index: int
    kind: str
    indent: int
    line: int
    ends_line: bool


@define
class _Repair:
    raw: Tokens
    faults: list[Diagnostic] = field(factory=list)
    stack: list[_Open] = field(factory=list)
    inserted: dict[int, list[str]] = field(factory=dict)
    replaced: dict[int, str] = field(factory=dict)
    removed: set[int] = field(factory=set)
    lines: list[tuple[int, int]] = field(factory=list)
    """(index of the first token, indentation) of every line that has tokens."""
    line_of: list[int] = field(factory=list)
    surplus: list[dict[str, int]] = field(factory=list)
    """By line: how many closers of a kind stand there without an opener, bodies over several lines left out."""

    def run(self) -> None:
        self._find_lines()
        indented = any(indent for _, indent in self.lines)
        for i, kind in enumerate(self.raw.kinds):
            if kind == "NL":
                continue
            if len(self.faults) > MAX_FAULTS:
                return
            line = self.line_of[i]
            first = self.lines[line][0] == i
            if first and indented:
                self._close_by_indentation(i, self.lines[line][1], kind in OPENER)
            if kind in CLOSER:
                self.stack.append(_Open(i, kind, self.lines[line][1], line, self._ends_line(i)))
            elif kind in OPENER:
                self._close(i, kind, line, first, indented)
        while self.stack:
            self._insert_closer(self.stack.pop(), len(self.raw))

    def _find_lines(self) -> None:
        text, begins = self.raw.text, True
        for i, kind in enumerate(self.raw.kinds):
            if kind != "NL" and begins:
                start = self.raw.starts[i]
                self.lines.append((i, start - text.rfind("\n", 0, start) - 1))
                self.surplus.append({})
            self.line_of.append(len(self.lines) - 1)
            if kind in OPENER and not begins:
                self._count(kind, 1)
            elif kind in CLOSER and not self._ends_line(i):
                self._count(CLOSER[kind], -1)
            begins = kind == "NL"

    def _count(self, closer: str, change: int) -> None:
        counts = self.surplus[-1]
        counts[closer] = counts.get(closer, 0) + change

    def _ends_line(self, index: int) -> bool:
        return index + 1 >= len(self.raw) or self.raw.kinds[index + 1] == "NL"

    def _close_by_indentation(self, at: int, indent: int, closes: bool) -> None:
        """Close what a line at this indentation cannot be inside of."""
        while self.stack and (self.stack[-1].indent > indent or (self.stack[-1].indent == indent and not closes)):
            self._insert_closer(self.stack.pop(), at)

    def _close(self, at: int, kind: str, line: int, first: bool, indented: bool) -> None:
        top = self.stack[-1] if self.stack else None
        extra = not first and self.surplus[line].get(kind, 0) > 0
        misplaced = (
            first and indented and (top is None or self.lines[line][1] != top.indent) and not self._ends_line(at)
        )
        if (extra or misplaced) and self._cannot_close_here(at, first):
            self._remove(at, kind, line)
            return
        if top is None or (indented and self._belongs_elsewhere(top, line, first)):
            self._without_opener(at, kind, line, first)
        elif OPENER[kind] == top.kind:
            self.stack.pop()
        elif extra and top.line == line and self.surplus[line].get(CLOSER[top.kind], 0) < 0:
            self._exchange(self.stack.pop(), at, kind)
        elif not self._closes_outer(at, kind, line, first):
            if extra:
                self._without_opener(at, kind, line, first)
            else:
                self._exchange(self.stack.pop(), at, kind)

    def _cannot_close_here(self, at: int, first: bool) -> bool:
        """Whether the tokens before and behind say that no bracket is closed between them."""
        before, behind = self.raw.kinds[at - 1], self.raw.kinds[at + 1] if at + 1 < len(self.raw) else "NL"
        if before in _WANTS_MORE or behind in ("NAME", "NUMBER", "STRING", "TRUE", "FALSE", "NONE", *SOFT_KINDS):
            return True
        if first:
            return behind not in OPENER and behind != "COMMA"
        return self.raw.kinds[at] == "RBRACE" and behind in ("EQ", "PLUSEQ")

    def _cannot_open_here(self, at: int) -> bool:
        """A bracket directly before `,`, or `{` before a value: it opens nothing."""
        behind = self.raw.kinds[at + 1] if at + 1 < len(self.raw) else "NL"
        return behind == "COMMA" or (self.raw.kinds[at] == "LBRACE" and behind in ("NUMBER", "STRING", "LSQB", "EQ"))

    def _closes_outer(self, at: int, kind: str, line: int, first: bool) -> bool:
        """Whether an opener further out, on this line or at this indentation, fits; those within it stay open."""
        fits = [k for k, opened in enumerate(self.stack) if opened.kind == OPENER[kind]]
        place = fits[-1] if fits else -1
        if place < 0 or not (
            self.stack[place].line == line or (first and self.stack[place].indent == self.lines[line][1])
        ):
            return False
        while len(self.stack) - 1 > place:
            self._insert_closer(self.stack.pop(), at)
        self.stack.pop()
        return True

    def _belongs_elsewhere(self, opened: _Open, line: int, first: bool) -> bool:
        """A closer that cannot be the one of `opened`: not at the start of its line, or indented more."""
        if opened.line == line or not opened.ends_line:
            return False
        return not first or (self.lines[line][1] > opened.indent and self._opener_of_body(line) is not None)

    # one change each

    def _insert_closer(self, opened: _Open, at: int) -> None:
        if self._cannot_open_here(opened.index):
            self.removed.add(opened.index)
            span = self.raw.span(opened.index)
            fix = Fix("delete it", (Edit(span, ""),), Safety.SAFE)
            self._report(Label(span), f"`{SPELLING[opened.kind]}` opens nothing", None, fix)
            return
        closer = SPELLING[CLOSER[opened.kind]]
        last = at - 1
        while last > opened.index and self.raw.kinds[last] == "NL":
            last -= 1
        end = self.raw.ends[last]
        self.inserted.setdefault(last + 1, []).append(CLOSER[opened.kind])
        place = Span(self.raw.file, end, end)
        if not opened.ends_line or self.line_of[last] == opened.line:
            text = f" {closer}" if closer == "}" and last != opened.index else closer
        else:
            start = self.raw.starts[self.lines[opened.line][0]]
            text = "\n" + self.raw.text[start - opened.indent : start] + closer
        here = "indentation closes it here" if at < len(self.raw) else "the file ends here"
        self._report(
            Label(self.raw.span(opened.index), "opened here"),
            f"`{SPELLING[opened.kind]}` is not closed",
            Label(place, here),
            Fix(f"insert `{closer}`", (Edit(place, text),), Safety.SAFE),
        )

    def _exchange(self, opened: _Open, at: int, kind: str) -> None:
        """Opener and closer of different kinds: what stands between says which of the two is right."""
        wanted = "LBRACE" if self._is_record(opened.index) else "LSQB" if opened.kind == "LBRACE" else opened.kind
        if wanted not in (opened.kind, OPENER[kind]):
            wanted = opened.kind
        self._count_off(self.line_of[at], kind)
        self._count_off(self.line_of[at], CLOSER[opened.kind], -1)
        if wanted == opened.kind:
            wrong, right = at, CLOSER[wanted]
        else:
            wrong, right = opened.index, wanted
        self.replaced[wrong] = right
        place = self.raw.span(wrong)
        self._report(
            Label(self.raw.span(at), "closed here"),
            f"`{SPELLING[opened.kind]}` is closed by `{SPELLING[kind]}`",
            Label(self.raw.span(opened.index), "opened here"),
            Fix(f"write `{SPELLING[right]}`", (Edit(place, SPELLING[right]),), Safety.SAFE),
        )

    def _is_record(self, opener: int) -> bool:
        kinds = [kind for kind in self.raw.kinds[opener + 1 : opener + 8] if kind != "NL"]
        while kinds[1:2] == ["DOT"]:
            del kinds[:2]
        return kinds[1:2] == ["EQ"]

    def _without_opener(self, at: int, kind: str, line: int, first: bool) -> None:
        if not self._insert_opener(at, kind, line, first):
            self._remove(at, kind, line)

    def _remove(self, at: int, kind: str, line: int) -> None:
        self._count_off(line, kind)
        self.removed.add(at)
        span = self.raw.span(at)
        fix = Fix("delete it", (Edit(span, ""),), Safety.SAFE)
        self._report(Label(span), f"`{SPELLING[kind]}` closes nothing", None, fix)

    def _count_off(self, line: int, kind: str, number: int = 1) -> None:
        self.surplus[line][kind] = self.surplus[line].get(kind, 0) - number

    def _insert_opener(self, at: int, kind: str, line: int, first: bool) -> bool:
        place = self._opener_of_body(line) if first else self._opener_on_line(at, kind, line)
        if place is None:
            return False
        self._count_off(line, kind)
        opener = SPELLING[OPENER[kind]]
        self.inserted.setdefault(place, []).append(OPENER[kind])
        end = self.raw.ends[place - 1]
        spot = Span(self.raw.file, end, end)
        self._report(
            Label(self.raw.span(at)),
            f"no `{opener}` opens this `{SPELLING[kind]}`",
            Label(spot, f"`{opener}` belongs here"),
            Fix(f"insert `{opener}`", (Edit(spot, f" {opener}"),), Safety.SAFE),
        )
        return True

    def _opener_of_body(self, line: int) -> int | None:
        """The end of the line above that has this line's indentation and is followed by deeper ones."""
        indent = self.lines[line][1]
        for above in range(line - 1, max(-1, line - _SEARCH), -1):
            if self.lines[above][1] <= indent:
                last = self.lines[above + 1][0] - 1
                while self.raw.kinds[last] == "NL":
                    last -= 1
                deeper = self.lines[above + 1][1] > indent and self.lines[above][1] == indent
                return last + 1 if deeper and self.raw.kinds[last] not in CLOSER else None
        return None

    def _opener_on_line(self, at: int, kind: str, line: int) -> int | None:
        kinds = self.raw.kinds
        start = max(self.lines[line][0], at - _SEARCH)
        depth = 0
        for i in range(at - 1, start, -1):
            if kinds[i] in OPENER:
                depth += 1
            elif kinds[i] in CLOSER:
                depth -= 1
                if depth < 0:
                    return None
            elif depth == 0 and kind == "RBRACE" and self._begins_field(i):
                return i
            elif depth == 0 and kind != "RBRACE" and kinds[i] in ("EQ", "IN", "ASSERT"):
                return i + 1
        return None

    def _begins_field(self, at: int) -> bool:
        """`name =` directly behind a value or another `=`: where `{` is missing."""
        kinds = self.raw.kinds
        if kinds[at] != "NAME" or kinds[at - 1] not in _VALUE_ENDS:
            return False
        while at + 2 < len(kinds) and kinds[at + 1] == "DOT":
            at += 2
        return kinds[at + 1] == "EQ"

    def _report(self, label: Label, message: str, other: Label | None, fix: Fix) -> None:
        self.faults.append(FP0104.at(label, message, *((other,) if other else ()), fixes=fix))

    def result(self) -> Tokens:
        raw, out = self.raw, Tokens(self.raw.file, self.raw.text)
        for i in range(len(raw) + 1):
            for kind in self.inserted.get(i, ()):
                end = raw.ends[i - 1] if i else 0
                out.append(kind, end, end, bad=True)
            if i in self.removed:
                out.bad.add(len(out))
            elif i < len(raw):
                changed = i in self.replaced or i in raw.bad
                out.append(self.replaced.get(i, raw.kinds[i]), raw.starts[i], raw.ends[i], bad=changed)
        return out


def _paired(tokens: Tokens) -> Tokens:
    """The tokens with what still does not pair up, after several faults close together, closed or left out."""
    out = Tokens(tokens.file, tokens.text)
    expected: list[str] = []
    for i, kind in enumerate(tokens.kinds):
        start, end, bad = tokens.starts[i], tokens.ends[i], i in tokens.bad
        if kind in CLOSER:
            expected.append(CLOSER[kind])
        elif kind in OPENER:
            if kind not in expected:
                out.bad.add(len(out))
                continue
            while expected[-1] != kind:
                out.append(expected.pop(), start, start, bad=True)
            expected.pop()
        out.append(kind, start, end, bad=bad)
    end = tokens.ends[-1] if len(tokens) else 0
    while expected:
        out.append(expected.pop(), end, end, bad=True)
    if len(tokens) in tokens.bad:
        out.bad.add(len(out))
    return out
