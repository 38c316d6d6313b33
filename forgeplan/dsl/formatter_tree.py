"""How is a text nested, with every comment in its place? Bodies, brackets, tokens and comments, for the formatter."""

from __future__ import annotations

from attrs import Factory, define, evolve, frozen

from forgeplan.dsl.layout import layout
from forgeplan.dsl.lexer import Comment, Lexed
from forgeplan.dsl.tokens import CLOSER, Tokens


@frozen
class Word:
    """One token. `prefix` marks a sign or `not` in front of its operand."""

    kind: str
    text: str
    prefix: bool = False


@frozen
class Remark:
    """A comment inside a statement; `alone` on its line or at the end of one."""

    text: str
    alone: bool


@define
class Entry:
    """A statement or list item, or a comment on lines of its own where `parts` is empty and `comment` is not.

    `blank` asks for an empty line above; `trailing` is a comment at the end of its last line.
    """

    parts: list[Part] = Factory(list)
    comment: str = ""
    blank: bool = False
    trailing: str = ""


@define
class Bracket:
    """`role` is body (braces), list, comprehension, or plain. `opened` is a comment behind the opening bracket.

    `spread` says that the author wants one entry a line: a newline behind `{`, or a comma before `]`.
    """

    opener: str
    role: str
    entries: list[Entry] = Factory(list)
    opened: str = ""
    spread: bool = False


Part = Word | Remark | Bracket

_OPERAND_ENDS = frozenset(
    ("NAME", "NUMBER", "STRING", "TRUE", "FALSE", "NONE", "SELF", "RPAR", "RSQB", "RBRACE", "OPT")
)
_ALWAYS_SPREAD = frozenset(("PLAN", "PROFILE", "SWEEP", "TEST"))


def tree(lexed: Lexed) -> list[Entry]:
    """The entries of a whole text without faults; comments lose the space at their end."""
    comments = [evolve(comment, text=comment.text.rstrip()) for comment in lexed.comments]
    return _Reader(layout(lexed.tokens), comments).entries("")


class _Reader:
    def __init__(self, tokens: Tokens, comments: list[Comment]) -> None:
        self.tokens, self.comments, self.text = tokens, comments, tokens.text
        self.at = self.next_comment = 0

    def kind(self, at: int) -> str:
        return self.tokens.kinds[at] if 0 <= at < len(self.tokens) else ""

    def entries(self, closer: str) -> list[Entry]:
        """Entries up to the closing bracket, which is left to the caller; the whole text where there is none."""
        found: list[Entry] = []
        current = Entry()
        while self.at < len(self.tokens) and self.kind(self.at) != closer:
            for comment in self._comments_before(self.at):
                current = self._place(comment, current, found, self._ends_entry(closer, current))
            kind = self.kind(self.at)
            if kind == "NL" or (kind == "COMMA" and self._separates(closer, current)):
                self.at += 1
                if current.parts:
                    found.append(current)
                    current = Entry()
                continue
            if not current.parts:
                current.blank = self._blank_before(self.tokens.starts[self.at])
            current.parts.append(self._part(current.parts))
        if current.parts:
            found.append(current)
            current = Entry()
        for comment in self._comments_before(self.at):
            current = self._place(comment, current, found, True)
        return found

    def _separates(self, closer: str, entry: Entry) -> bool:
        """Whether a comma ends the entry; it does not in `from … import a, b` and `after a, b`."""
        if closer == "RBRACE":
            return not any(isinstance(p, Word) and p.kind == "AFTER" for p in entry.parts) or _has_body(entry)
        return closer != ""

    def _comments_before(self, at: int) -> list[Comment]:
        limit = self.tokens.starts[at] if at < len(self.tokens) else len(self.text) + 1
        if self.kind(at) == "NL":
            limit = self.tokens.ends[at]
        start = self.next_comment
        while self.next_comment < len(self.comments) and self.comments[self.next_comment].span.start < limit:
            self.next_comment += 1
        return self.comments[start : self.next_comment]

    def _place(self, comment: Comment, current: Entry, found: list[Entry], is_last: bool) -> Entry:
        """Put a comment into the entry, which it `is_last` of, or behind it; the entry that is read on."""
        if current.parts:
            if is_last and not comment.alone and not current.trailing:
                current.trailing = comment.text
            elif is_last:
                found.append(current)
                found.append(Entry(comment=comment.text, blank=self._blank_before(comment.span.start)))
                return Entry()
            else:
                current.parts.append(Remark(comment.text, comment.alone))
        elif comment.alone or not found or found[-1].comment or found[-1].trailing:
            found.append(Entry(comment=comment.text, blank=self._blank_before(comment.span.start)))
        else:
            found[-1].trailing = comment.text
        return current

    def _ends_entry(self, closer: str, entry: Entry) -> bool:
        kind = self.kind(self.at)
        return kind == "NL" or (kind == "COMMA" and self._separates(closer, entry))

    def _blank_before(self, start: int) -> bool:
        """Whether the line above holds nothing, or a comma alone: neither lets a doc comment reach over it."""
        line = self.text.rfind("\n", 0, start)
        return line > 0 and not self.text[self.text.rfind("\n", 0, line) + 1 : line].strip(" \t\r,")

    def _part(self, before: list[Part]) -> Part:
        at, kind = self.at, self.kind(self.at)
        self.at += 1
        if kind in CLOSER:
            return self._bracket(at, kind, before)
        prefix = kind == "NOT" or (kind in ("MINUS", "PLUS") and self.kind(at - 1) not in _OPERAND_ENDS)
        return Word(kind, self.tokens.word(at), prefix)

    def _bracket(self, at: int, kind: str, before: list[Part]) -> Bracket:
        closer = CLOSER[kind]
        bracket = Bracket({"LPAR": "(", "LSQB": "[", "LBRACE": "{"}[kind], self._role(at, kind))
        comments = self._comments_before(self.at)
        behind = [c for c in comments if not c.alone]
        if behind:
            bracket.opened = behind[0].text
            self.next_comment -= len(comments) - 1
        else:
            self.next_comment -= len(comments)
        gap_end = self.tokens.starts[self.at] if self.at < len(self.tokens) else len(self.text)
        if kind == "LBRACE":
            bracket.spread = "\n" in self.text[self.tokens.ends[at] : gap_end] or _is_block(before)
        bracket.entries = self.entries(closer)
        if bracket.role == "list":
            bracket.spread = self.kind(self.at - 1) == "COMMA"
        if not bracket.entries:
            bracket.spread = False
        self.at += 1
        return bracket

    def _role(self, at: int, kind: str) -> str:
        if kind == "LBRACE":
            return "body"
        if kind == "LPAR" or self.kind(at - 1) in _OPERAND_ENDS:
            return "plain"
        return "comprehension" if self.kind(at + 1) == "FOR" else "list"


def _is_block(parts: list[Part]) -> bool:
    first = parts[0] if parts else None
    if isinstance(first, Word) and first.kind == "PARTIAL":
        first = parts[1]
    return isinstance(first, Word) and first.kind in _ALWAYS_SPREAD and not any(isinstance(p, Bracket) for p in parts)


def _has_body(entry: Entry) -> bool:
    return any(isinstance(part, Bracket) and part.opener == "{" for part in entry.parts)
