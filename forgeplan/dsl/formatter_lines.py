"""Onto which lines does a statement go? At most 100 columns, the same answer for the same nesting."""

from __future__ import annotations

from collections.abc import Sequence
from unicodedata import east_asian_width

from attrs import Factory, define, frozen

from forgeplan.dsl.formatter_tree import Bracket, Entry, Part, Remark, Word

WIDTH = 100
INDENT = "  "

_CLOSERS = {"(": ")", "[": "]", "{": "}"}
_TIGHT_BEFORE = frozenset(("COMMA", "COLON", "DOT", "OPT"))
_CALLABLE = frozenset(("NAME", "SELF", "STRING", "OPT"))
_BREAKS = (
    ("THEN", "ELSE"),
    ("OR",),
    ("AND",),
    ("COMPARE", "IN"),
    ("RANGE",),
    ("PLUS", "MINUS"),
    ("TIMES",),
    ("POWER",),
)
_BREAK_BEFORE = frozenset(("THEN", "ELSE", "OR", "AND"))


def width(text: str) -> int:
    """Columns of a text; wide characters take two."""
    if text.isascii():
        return len(text)
    return sum(2 if east_asian_width(c) in "WF" else 1 for c in text)


def flat(parts: Sequence[Part]) -> str | None:
    """The parts on one line, or None where a comment or a spread bracket forbids it."""
    pieces: list[str] = []
    previous: Part | None = None
    for part in parts:
        text = _flat_part(part)
        if text is None:
            return None
        pieces.append((" " if _spaced(previous, part) else "") + text)
        previous = part
    return "".join(pieces)


def _flat_part(part: Part) -> str | None:
    if isinstance(part, Word):
        return part.text
    if isinstance(part, Remark) or part.spread or part.opened:
        return None
    texts = []
    for entry in part.entries:
        text = None if entry.comment or entry.trailing else flat(entry.parts)
        if text is None:
            return None
        texts.append(text)
    inner = ", ".join(texts)
    return f"{{ {inner} }}" if part.opener == "{" and inner else part.opener + inner + _CLOSERS[part.opener]


def _spaced(left: Part | None, right: Part) -> bool:
    if left is None:
        return False
    if isinstance(right, Word) and right.kind in _TIGHT_BEFORE:
        return False
    if isinstance(left, Word):
        if left.kind == "DOT" or (left.prefix and left.kind != "NOT"):
            return False
        if isinstance(right, Bracket) and right.opener != "{":
            return left.kind not in _CALLABLE
        return True
    return not (isinstance(left, Bracket) and isinstance(right, Bracket) and right.opener != "{")


@frozen
class Place:
    """Where a statement is written: its indentation, how far its sign is padded, and how far it may be taken to be."""

    indent: int
    key: int = 0
    """Columns of what stands before `=`, padding included; 0 where nothing is aligned."""
    assumed: int = 0
    """Columns of padding to assume when deciding how to break: the decision must not depend on how neighbours break."""


def lines_of(parts: Sequence[Part], place: Place) -> list[str]:
    """The lines of one statement or item, without separators; the first without its indentation."""
    writer = _Writer(place)
    writer.statement(parts)
    return [line.rstrip() for line in writer.lines]


@define
class _Writer:
    place: Place
    lines: list[str] = Factory(lambda: [""])
    previous: Part | None = None

    def statement(self, parts: Sequence[Part]) -> None:
        sign = _sign(parts) if self.place.key else 0
        for part in parts[:sign]:
            self.word(part)
        if sign:
            self.lines[-1] = self.lines[-1].ljust(self.place.key)
        self.breakable(parts[sign:], self.place.indent // len(INDENT) + 2)

    def room(self) -> int:
        """Columns left on the line, by the assumed padding."""
        used = width(self.lines[-1]) + (self.place.indent if len(self.lines) == 1 else 0)
        return WIDTH - used - (self.place.assumed if len(self.lines) == 1 else 0)

    def word(self, part: Part, text: str | None = None) -> None:
        space = " " if _spaced(self.previous, part) and self.lines[-1].strip() else ""
        self.lines[-1] += space + (text if text is not None else _flat_part(part) or "")
        self.previous = part

    def new_line(self, indent: int) -> None:
        self.lines.append(INDENT * indent)

    def breakable(self, parts: Sequence[Part], indent: int) -> None:
        """Parts whose skeleton, all brackets empty, decides whether they are broken at operators."""
        cuts = next((cuts for kinds in _BREAKS if (cuts := _cuts(parts, kinds))), [])
        if not cuts or _skeleton(parts) + 1 <= self.room():
            self.inline(parts, indent)
            return
        for start, end in zip([0, *cuts], [*cuts, len(parts)], strict=True):
            if start:
                self.new_line(indent)
            self.breakable(parts[start:end], indent)

    def inline(self, parts: Sequence[Part], indent: int) -> None:
        """Parts on one line, but for comments and spread brackets."""
        spread = self._spread(parts)
        for i, part in enumerate(parts):
            if isinstance(part, Remark):
                self.remark(part, indent)
            elif isinstance(part, Bracket) and i in spread:
                self.bracket(part)
            else:
                self.word(part)

    def _spread(self, parts: Sequence[Part]) -> set[int]:
        """Which brackets go over several lines: those that must, then the last, then all."""
        brackets = [i for i, part in enumerate(parts) if isinstance(part, Bracket) and (part.entries or part.opened)]
        forced = {i for i in brackets if _flat_part(parts[i]) is None}
        for spread in (forced, forced | set(brackets[-1:])):
            if self._fits(parts, spread):
                return spread
        return set(brackets)

    def _fits(self, parts: Sequence[Part], spread: set[int]) -> bool:
        room, previous = self.room(), self.previous
        used = 0
        for i, part in enumerate(parts):
            space = _spaced(previous, part)
            previous = part
            if i in spread or isinstance(part, Remark):
                if used + space + 1 > room:
                    return False
                used, room = 1, WIDTH - len(INDENT) * self._bracket_indent()
                continue
            text = _flat_part(part) or ""
            first, _, last = text.partition("\n")
            if used + space + width(first) > room:
                return False
            used = width(last.rpartition("\n")[2]) if "\n" in text else used + space + width(text)
        return True

    def _bracket_indent(self) -> int:
        line = self.lines[-1]
        return (
            self.place.indent // len(INDENT)
            if len(self.lines) == 1
            else (len(line) - len(line.lstrip())) // len(INDENT)
        )

    def remark(self, part: Remark, indent: int) -> None:
        if part.alone and self.lines[-1].strip():
            self.new_line(indent)
        self.lines[-1] += part.text if part.alone else "  " + part.text
        self.new_line(indent)

    def bracket(self, part: Bracket) -> None:
        self.word(part, part.opener)
        indent = self._bracket_indent()
        if part.opened:
            self.lines[-1] += "  " + part.opened
        comma = "," if part.role in ("list", "plain") else ""
        self.lines += entry_lines(part.entries, (indent + 1) * len(INDENT), comma, part.role == "list")
        self.lines.append(INDENT * indent + _CLOSERS[part.opener])


def _skeleton(parts: Sequence[Part]) -> int:
    """Columns of the parts with all brackets emptied."""
    total, previous = 0, None
    for part in parts:
        if isinstance(part, Remark):
            continue
        total += _spaced(previous, part) + (2 if isinstance(part, Bracket) else width(part.text.partition("\n")[0]))
        previous = part
    return total


def _cuts(parts: Sequence[Part], kinds: tuple[str, ...]) -> list[int]:
    """Where the parts may be cut at operators of these kinds, with something left on both sides."""
    signs = [i for i, part in enumerate(parts) if isinstance(part, Word) and part.kind in kinds and not part.prefix]
    cuts = (i if parts[i].kind in _BREAK_BEFORE else i + 1 for i in signs)  # type: ignore[union-attr]
    return [cut for cut in cuts if 0 < cut < len(parts)]


def _sign(parts: Sequence[Part]) -> int:
    """The index of the `=` that is aligned; 0 if there is none."""
    for i, part in enumerate(parts):
        if isinstance(part, Word) and part.kind == "EQ":
            return i
        if not isinstance(part, Word):
            break
    return 0


def entry_lines(entries: Sequence[Entry], indent: int, comma: str, comma_at_end: bool) -> list[str]:
    """The lines of the entries of a body or list, indented."""
    margin = " " * indent
    layouts = _aligned(entries, indent) if not comma else [lines_of(e.parts, Place(indent)) for e in entries]
    last = max((i for i, entry in enumerate(entries) if entry.parts), default=-1)
    found: list[str] = []
    for i, (entry, lines) in enumerate(zip(entries, layouts, strict=True)):
        if entry.blank and found:
            found.append("")
        if entry.comment:
            found.append(margin + entry.comment)
            continue
        lines = [margin + lines[0], *lines[1:]]
        if comma and (comma_at_end or i != last):
            lines[-1] += comma
        if entry.trailing:
            lines[-1] += "  " + entry.trailing
        found += lines
    return found


def _aligned(entries: Sequence[Entry], indent: int) -> list[list[str]]:
    """The lines of each entry, with the `=` of neighbouring one-line assignments under each other."""
    keys = [_key(entry) for entry in entries]
    layouts: list[list[str]] = [[] for _ in entries]
    for run in _runs(entries, keys, lambda i: False):
        widest = max(keys[i][1] for i in run)
        for i in run:
            layouts[i] = lines_of(entries[i].parts, Place(indent, keys[i][1], widest - keys[i][1]))
    for run in _runs(entries, keys, lambda i: len(layouts[i]) > 1 or "\n" in layouts[i][0]):
        widest, assumed = max(keys[i][1] for i in run), {i: _assumed(i, entries, keys) for i in run}
        for i in run:
            layouts[i] = lines_of(entries[i].parts, Place(indent, widest, assumed[i] - widest))
    for i, entry in enumerate(entries):
        if entry.parts and not keys[i][1]:
            layouts[i] = lines_of(entry.parts, Place(indent))
    return layouts


def _assumed(index: int, entries: Sequence[Entry], keys: Sequence[tuple[str, int]]) -> int:
    for run in _runs(entries, keys, lambda i: False):
        if index in run:
            return max(keys[i][1] for i in run)
    return keys[index][1]


def _key(entry: Entry) -> tuple[str, int]:
    """What kind of assignment an entry is, and the columns before its `=`; ("", 0) for anything else."""
    sign = _sign(entry.parts)
    first = entry.parts[0] if entry.parts else None
    if not sign or not isinstance(first, Word) or first.kind not in ("NAME", "LET"):
        return "", 0
    return first.kind, width(flat(entry.parts[:sign]) or "")


def _runs(entries: Sequence[Entry], keys: Sequence[tuple[str, int]], ends: object) -> list[list[int]]:
    """Neighbouring assignments of one kind; comments between do not part them, empty lines do."""
    runs: list[list[int]] = []
    current: list[int] = []
    for i, entry in enumerate(entries):
        if entry.comment and not entry.blank:
            continue
        kind = keys[i][0]
        if current and (entry.blank or not kind or kind != keys[current[0]][0] or ends(current[-1])):  # type: ignore[operator]
            runs.append(current)
            current = []
        if kind:
            current.append(i)
    return [*runs, current] if current else runs
