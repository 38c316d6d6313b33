"""Which tokens and comments does a text consist of? What cannot be read is reported and stepped over."""

from __future__ import annotations

import re

from attrs import Factory, define, frozen

from forgeplan.diagnostics.codes import code
from forgeplan.diagnostics.diagnostic import Diagnostic, Edit, Fix, Label, Safety
from forgeplan.diagnostics.span import Span
from forgeplan.dsl import characters
from forgeplan.dsl.numbers import canonical
from forgeplan.dsl.strings import plain_end, scan_string
from forgeplan.dsl.tokens import OPERATORS, SOFT_KINDS, WORDS, Tokens

FP0102 = code("FP0102", 'a string closes on its line (`"`) or at `"""`; escapes are known; `${…}` holds one expression')
FP0108 = code("FP0108", "numbers: digits on both sides of `.` and `_`, one exponent, no leading zero, no hex")
FP0112 = code("FP0112", "input bounds: 16 MiB a file, 64 open brackets, 1 MiB a token, 1,000 faults")

MAX_TOKEN = 2**20
MAX_OPEN_BRACKETS = 64
MAX_FAULTS = 1_000
"""Of one text. Who has more has given another file than was meant: reading it on would only take time."""

_TOKEN = re.compile(
    r"""[ \t\r]*+(?:
      (?P<NAME>[A-Za-z_]\w*+)
    | (?P<NUMBER>(?:0|[1-9]\d*+(?:_\d++)*+)(?:\.\d++(?:_\d++)*+)?(?:[eE][+-]?\d++)?
        (?:%|(?:(?![eE](?![A-Za-z]))[A-Za-z]++(?:/s(?!\w))?)?(?!\w|\.(?!\.))))
    | (?P<NL>\n)
    | (?P<BADNUM>\.?\d(?:\w|\.(?!\.)|(?<=[\d_][eE])[+-](?=\d))*+%?)
    | (?P<OP>\*\*|//|\.\.|[+=!<>]=|[-+*/%=<>.,:()\[\]{}?])
    | (?P<STRING>"(?!"")(?:[^"\\$\n]++|\\[^\n]|\$(?!\{))*+")
    | (?P<COMMENT>\#[^\n]*+)
    | (?P<QUOTE>")
    | (?P<END>\Z)
    | (?P<BAD>.)
    )""",
    re.VERBOSE | re.ASCII,
)
_NAME_FOLLOWS = re.compile(r"[ \t]+[A-Za-z_]")
_LINE_REST = re.compile(r"[^\n]*")
_FOREIGN_RUN = re.compile(r"[^\w\s\"#=+\-*/%<>.,:()\[\]{}?;']+")
_BRACKETS = {"(": "RPAR", "[": "RSQB", "{": "RBRACE", ")": "RPAR", "]": "RSQB", "}": "RBRACE"}


@frozen
class Comment:
    """From `#` to the end of the line. `alone` where nothing but a comma stands before it on the line."""

    span: Span
    text: str
    alone: bool


@define
class Lexed:
    """`tokens` holds every newline as NL. `balanced` says that brackets pair up; `gave_up` that a bound was passed.

    `depth` is the largest number of brackets open at once.
    """

    tokens: Tokens
    comments: list[Comment] = Factory(list)
    diagnostics: list[Diagnostic] = Factory(list)
    balanced: bool = True
    depth: int = 0
    gave_up: bool = False


def lex(file: str, text: str, start: int = 0, end: int | None = None) -> Lexed:
    """The tokens of `text[start:end]`, with places in `text`."""
    limit = len(text) if end is None else end
    lexer = _Lexer(file, text, limit)
    lexer.out.diagnostics += characters.invisible_characters(file, text, start, limit)
    at: int | None = start
    while at is not None and not lexer.out.gave_up:
        at = lexer.run(at)
    lexer.out.balanced &= not lexer.open
    return lexer.out


class _Lexer:
    def __init__(self, file: str, text: str, limit: int) -> None:
        self.file, self.text, self.limit = file, text, limit
        self.out = Lexed(Tokens(file, text))
        self.open: list[str] = []
        self.string_fault_line = -2  # the first line ends before index 0: its "newline" is at -1

    def run(self, at: int) -> int | None:
        """Read regular tokens from `at`; the place to go on from after an irregular one, or None at the end."""
        out, text = self.out, self.text
        kinds, starts, ends = out.tokens.kinds, out.tokens.starts, out.tokens.ends
        last = kinds[-1] if kinds else ""
        for match in _TOKEN.finditer(text, at, self.limit):
            kind = match.lastgroup
            start, end = match.span(match.lastindex or 0)
            if kind == "NAME":
                word = text[start:end]
                if word in WORDS:
                    kind = self.kind_of_word(word, last, end)
            elif kind == "OP":
                operator = text[start:end]
                kind = OPERATORS[operator]
                if operator in _BRACKETS:
                    if not self.bracket(operator, start):
                        return None
                elif last in SOFT_KINDS and (kind == "EQ" or kind == "PLUSEQ" or kind == "DOT"):
                    kinds[-1] = "NAME"
            elif kind == "COMMENT":
                alone = last == "NL" or not last or (last == "COMMA" and kinds[-2:-1] in ([], ["NL"]))
                out.comments.append(Comment(Span(self.file, start, end), text[start:end].rstrip("\r"), alone))
                continue
            elif kind == "END":
                return None
            elif kind in ("BADNUM", "QUOTE", "BAD"):
                return None if self.many_faults() else self.irregular(kind, start, end)
            if end - start > MAX_TOKEN:
                self.too_long(start, end)
            kinds.append(kind)  # type: ignore[arg-type]
            starts.append(start)
            ends.append(end)
            last = kind  # type: ignore[assignment]
        return None

    def kind_of_word(self, word: str, last: str, end: int) -> str:
        if last == "DOT":
            return "NAME"
        if word == "error" and not (last == "EXPECT" and _NAME_FOLLOWS.match(self.text, end)):
            return "NAME"
        return WORDS[word]

    def bracket(self, operator: str, start: int) -> bool:
        """Keep count of open brackets. False where there are too many to go on."""
        kind = _BRACKETS[operator]
        if operator in "([{":
            self.open.append(kind)
            self.out.depth = max(self.out.depth, len(self.open))
            if len(self.open) > MAX_OPEN_BRACKETS:
                self.give_up(start, f"more than {MAX_OPEN_BRACKETS} brackets are open at once")
                return False
        elif self.open and self.open[-1] == kind:
            self.open.pop()
        else:
            self.out.balanced = False
        return True

    def give_up(self, start: int, message: str) -> None:
        self.out.gave_up = True
        self.out.diagnostics = [FP0112.at(Span(self.file, start, start + 1), message)]

    def many_faults(self) -> bool:
        self.out.gave_up = len(self.out.diagnostics) > MAX_FAULTS
        return self.out.gave_up

    def too_long(self, start: int, end: int) -> None:
        size = f"{end - start:,} characters"
        span = Span(self.file, start, start + 1)
        self.out.diagnostics.append(FP0112.at(span, f"a token of {size} is longer than {MAX_TOKEN:,} characters"))

    def irregular(self, kind: str, start: int, end: int) -> int:
        if kind == "BADNUM":
            return self.malformed_number(start, end)
        if kind == "QUOTE":
            return self.long_string(start)
        return self.foreign_character(start)

    def malformed_number(self, start: int, end: int) -> int:
        spelling = self.text[start:end]
        span = Span(self.file, start, end)
        right = _meant_by(spelling) if len(spelling) < 200 else None
        help = f"write `{right}`" if right else "a number has one point and one exponent, such as `1.5e-3` or `11_008`"
        fixes = (Fix(help, (Edit(span, right),), Safety.SAFE),) if right else ()
        shown = spelling if len(spelling) < 40 else spelling[:40] + "…"
        message = f"`{shown}` is not how a number is written"
        self.out.diagnostics.append(FP0108.at(span, message, help=help, fixes=fixes))
        self.out.tokens.append("NUMBER", start, end, bad=True)
        return end

    def long_string(self, start: int) -> int:
        """A string with `${…}` or in triple quotes, or one that does not close."""
        scan = scan_string(self.text, start, self.limit)
        if scan.end < 0:
            return self.unclosed_string(start, scan.opened)
        if scan.end - start > MAX_TOKEN:
            self.too_long(start, scan.end)
        self.out.tokens.append("STRING", start, scan.end)
        return scan.end

    def unclosed_string(self, start: int, opened: int) -> int:
        text, tokens = self.text, self.out.tokens
        if text.startswith('"""', start):
            self.report_string(start, self.limit, Label(Span(self.file, start, start + 3), "opened here"), '"""')
            tokens.append("STRING", start, self.limit, bad=True)
            return self.limit
        line = text.rfind("\n", 0, start)
        rest = _LINE_REST.match(text, start, self.limit)
        line_end = rest.end() if rest else self.limit
        if self.string_fault_line == line:
            tokens.append("STRING", start, line_end, bad=True)
            return line_end
        self.string_fault_line = line
        self.forget_characters_behind(line)
        end = plain_end(text, start, self.limit) if opened != start else -1
        if end >= 0:
            self.report_string(start, end - 1, Label(Span(self.file, opened, opened + 2), "opened here"), "}")
        else:
            end = self.guessed_end(start, line, line_end)
            self.report_string(start, end, Label(Span(self.file, start, start + 1), "opened here"), '"')
        tokens.append("STRING", start, end, bad=True)
        return end

    def forget_characters_behind(self, line: int) -> None:
        """Leave out FP0101 behind `line`: those are the last, and looking at all would be slow with many strings."""
        found = self.out.diagnostics
        first = len(found)
        while first and (span := found[first - 1].span) is not None and span.start > line:
            first -= 1
        found[first:] = [d for d in found[first:] if d.code != "FP0101"]

    def report_string(self, start: int, end: int, label: Label, closer: str) -> None:
        what = "`${`" if closer == "}" else "a string"
        where = "in the file" if closer == '"""' else "in this string" if closer == "}" else "on its line"
        place = Span(self.file, end, end)
        self.out.diagnostics.append(
            FP0102.at(
                label,
                f"{what} is not closed {where}",
                *(() if closer == '"""' else (Label(place, f"perhaps `{closer}` belongs here"),)),
                help=f"close it with `{closer}`"
                + ("" if closer != '"' else '; text over several lines stands in `"""`'),
                fixes=Fix(f"insert `{closer}`", (Edit(place, closer),), Safety.ASK),
            )
        )

    def guessed_end(self, start: int, line: int, line_end: int) -> int:
        """Where the missing quote may belong: before what closes the brackets that were opened on this line."""
        tokens, text = self.out.tokens, self.text
        depth = 0
        for i in range(len(tokens) - 1, -1, -1):
            if tokens.starts[i] <= line:
                break
            depth += {"LPAR": 1, "LSQB": 1, "LBRACE": 1, "RPAR": -1, "RSQB": -1, "RBRACE": -1}.get(tokens.kinds[i], 0)
        end = len(text[start:line_end].rstrip(" \t\r,")) + start
        while depth > 0 and end > start + 1 and text[end - 1] in ")]}":
            depth -= 1
            end = len(text[start : end - 1].rstrip()) + start
        return max(end, start + 1)

    def foreign_character(self, start: int) -> int:
        character = self.text[start]
        if hidden := characters.INVISIBLE.match(self.text, start, self.limit):
            self.out.tokens.bad.add(len(self.out.tokens))
            return hidden.end()
        if character == ";":
            return self.semicolon(start)
        if character in characters.DOUBLE_QUOTES or character in characters.SINGLE_QUOTES:
            return self.foreign_quotes(start)
        if character in characters.LOOK_ALIKES:
            return self.look_alike(start, characters.LOOK_ALIKES[character])
        if character.isalnum():
            return self.foreign_letters(start)
        return self.other_characters(start)

    def semicolon(self, start: int) -> int:
        text = self.text
        line_start = text.rfind("\n", 0, start) + 1
        indent = re.match(r"[ \t]*", text[line_start:start])
        after = re.compile(r"[ \t;]*").match(text, start)
        end = after.end() if after else start + 1
        ends_line = end >= self.limit or text[end] in "\n\r#}"
        edit = Edit(Span(self.file, start, end), "" if ends_line else "\n" + (indent[0] if indent else ""))
        help = "delete it: a statement ends at its newline" if ends_line else "begin the next statement on a new line"
        self.report(start, start + 1, "", help, edit)
        self.out.tokens.append("NL", start, start + 1)
        return end

    def look_alike(self, start: int, meant: str) -> int:
        self.report(start, start + 1, meant, f"write {'a plain space' if meant == ' ' else f'`{meant}`'}")
        if meant in OPERATORS:
            if meant not in _BRACKETS or self.bracket(meant, start):
                self.out.tokens.append(OPERATORS[meant], start, start + 1)
        elif meant != " ":
            self.out.tokens.bad.add(len(self.out.tokens))
        return start + 1

    def foreign_quotes(self, start: int) -> int:
        """`“text”` and `'text'` are read as the string that was meant."""
        text = self.text
        quotes = characters.DOUBLE_QUOTES + '"' if text[start] in characters.DOUBLE_QUOTES else characters.SINGLE_QUOTES
        closing = re.compile(f'[^{re.escape(quotes)}\n"]*[{re.escape(quotes)}]').match(text, start + 1, self.limit)
        if closing is None:
            self.report(start, start + 1, None, 'strings stand in `"`')
            self.out.tokens.bad.add(len(self.out.tokens))
            return start + 1
        edits = (
            Edit(Span(self.file, start, start + 1), '"'),
            Edit(Span(self.file, closing.end() - 1, closing.end()), '"'),
        )
        self.report(start, start + 1, '"', 'strings stand in `"`', *edits)
        self.out.tokens.append("STRING", start, closing.end())
        return closing.end()

    def foreign_letters(self, start: int) -> int:
        """A word with a letter outside ASCII: one token, with what stands directly before and behind."""
        tokens = self.out.tokens
        begin = start
        if tokens.kinds and tokens.kinds[-1] in ("NAME", *WORDS.values()) and tokens.ends[-1] == start:
            begin = tokens.starts.pop()
            tokens.kinds.pop()
            tokens.ends.pop()
        end = start + 1
        while end < self.limit and (self.text[end].isalnum() or self.text[end] == "_"):
            end += 1
        self.report(start, start + 1, None, "names consist of a-z, A-Z, 0-9 and _")
        tokens.append("NAME", begin, end, bad=True)
        return end

    def other_characters(self, start: int) -> int:
        match = _FOREIGN_RUN.match(self.text, start, self.limit)
        end = match.end() if match else start + 1
        run = self.text[start:end]
        word = characters.WORDS_FOR.get(run)
        self.report(start, end, word, f"write `{word}`" if word else "delete it, or put it into a string")
        if word:
            self.out.tokens.append(WORDS[word], start, end)
        else:
            self.out.tokens.bad.add(len(self.out.tokens))
        return end

    def report(self, start: int, end: int, meant: str | None, help: str, *edits: Edit) -> None:
        span = Span(self.file, start, end)
        if not edits and meant is not None:
            edits = (Edit(span, meant),)
        self.out.diagnostics.append(characters.starts_no_token(span, self.text[start:end], meant, help, edits))


def _meant_by(spelling: str) -> str | None:
    """What was meant by a word that begins like a number: `1_0` is 10, and `1f1b` what others call a member."""
    from forgeplan.dsl.vocabulary import foreign_members  # the schema, which few texts need this early

    right = canonical(spelling)
    return right if right != spelling and right else foreign_members().get(spelling.lower())
