"""How are the lines shown on which labels stand, with the marks exactly under what they mark?"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from functools import lru_cache

from attrs import frozen

from forgeplan.diagnostics.cells import cells, clean, shown, wrap
from forgeplan.diagnostics.diagnostic import Label
from forgeplan.diagnostics.source import Source
from forgeplan.diagnostics.span import Span

TAB = 4
_SHOWN_WHOLE = 4
"""A span of at most so many lines is shown with every line; of a longer one, the first and the last."""
_NARROW = 24
"""A label's text with fewer cells than this to its right moves to the left instead of being broken into many lines."""

_BEFORE = 12
"""Cells of a long line that are shown before its first mark at least."""


@frozen
class Row:
    """A line of an excerpt: text or marks, in pieces with the style of each; or a gap between lines."""

    number: int | None = None
    pieces: tuple[tuple[str, str], ...] = ()
    is_gap: bool = False


@frozen
class Mark:
    """A part of one line, in cells from its beginning, with what is said about it."""

    start: int
    end: int
    is_primary: bool
    text: str

    def cut(self, low: int, high: int, shift: int) -> Mark:
        start = min(max(self.start, low), high) - shift
        return Mark(start, max(min(self.end, high) - shift, start + 1), self.is_primary, self.text)


def rows_of(source: Source, labels: Sequence[Label], primary: Label, width: int) -> list[Row]:
    """The lines of one text that hold labels, by number, each with its marks below. `width` is that of the text."""
    marks: dict[int, list[Mark]] = {}
    for label in labels:
        for number, mark in _marks(source, label, label is primary):
            marks.setdefault(number, []).append(mark)
    rows: list[Row] = []
    previous: int | None = None
    for number in sorted(marks):
        if previous is not None and number == previous + 2:
            rows += _line(source.line(number - 1), number - 1, [], width)
        elif previous is not None and number > previous + 2:
            rows.append(Row(is_gap=True))
        rows += _line(source.line(number), number, marks[number], width)
        previous = number
    return rows


def last_line(source: Source, span: Span) -> int:
    """Number of the last line on which a span stands."""
    return source.position(_end(source, span))[0]


def _end(source: Source, span: Span) -> int:
    """The end of a span, without a line break that it ends in."""
    end = min(span.end, len(source.text))
    while end > span.start and source.text[end - 1] in "\r\n":
        end -= 1
    return max(end, min(span.start, len(source.text)))


def _marks(source: Source, label: Label, is_primary: bool) -> Iterable[tuple[int, Mark]]:
    first, column = source.position(min(label.span.start, len(source.text)))
    last, end_column = source.position(_end(source, label.span))
    text = clean(label.text)
    numbers = range(first, last + 1) if last - first < _SHOWN_WHOLE else (first, last)
    for number in numbers:
        line = source.line(number)
        low = column - 1 if number == first else len(line) - len(line.lstrip())
        high = end_column - 1 if number == last else len(line.rstrip())
        if high <= low and number != first and number != last:
            continue
        places = _places(line)
        start, end = places[min(low, len(line))], places[min(high, len(line))]
        yield number, Mark(start, max(end, start + 1), is_primary, text if number == last else "")


@lru_cache(maxsize=16)
def _places(line: str) -> Sequence[int]:
    """For each character, and for the end: the cell at which it begins."""
    if line.isascii() and line.isprintable():
        return range(len(line) + 1)
    places = [0]
    for char in line:
        here = places[-1]
        places.append(here + (TAB - here % TAB if char == "\t" else cells(shown(char))))
    return places


def _line(line: str, number: int, marks: list[Mark], width: int) -> list[Row]:
    places = _places(line)
    if max([places[-1], *(mark.end for mark in marks)]) <= width:
        return [Row(number, _text(_slice(line, places, 0, places[-1]))), *_below(marks, width)]
    rows: list[Row] = []
    for group in _windows(marks, width):
        rows += _window(line, places, number, group, width)
    return rows


def _windows(marks: list[Mark], width: int) -> list[list[Mark]]:
    """Marks that fit into one part of a line too long to be shown whole; at least one group, perhaps empty."""
    groups: list[list[Mark]] = [[]]
    for mark in sorted(marks, key=lambda mark: (mark.start, mark.end)):
        group = groups[-1]
        if group and mark.end - group[0].start > width - 8:
            groups.append([mark])
        else:
            group.append(mark)
    return groups


def _window(line: str, places: Sequence[int], number: int, marks: list[Mark], width: int) -> list[Row]:
    """A part of a long line, with `…` where something is left out: as much before the marks as leaves room for text."""
    room = width - 2
    start = marks[0].start if marks else 0
    last = max(marks, key=lambda mark: mark.end, default=None)
    end = last.end if last else 0
    wanted = end + max(cells(last.text) + 1, 8) if last else 0
    low = max(0, min(wanted - room, start - _BEFORE))
    low = 0 if low <= _BEFORE and end <= room else _word_start(line, places, low, start)
    high = places[bisect_right(places, low + room) - 1]
    left = "…" if low else ""
    right = "…" if high < places[-1] else ""
    shift = low - len(left)
    text = left + _slice(line, places, low, high) + right
    return [Row(number, _text(text)), *_below([mark.cut(low, max(high, low + 1), shift) for mark in marks], width)]


def _word_start(line: str, places: Sequence[int], low: int, high: int) -> int:
    """The first beginning of a word between two cells, else the first beginning of a character."""
    first = min(bisect_left(places, low), len(line))
    for index in range(max(first, 1), bisect_right(places, high)):
        if line[index - 1] == " ":
            return places[index]
    return places[first]


def _slice(line: str, places: Sequence[int], low: int, high: int) -> str:
    """What is printed of the characters that stand between two cells."""
    out = []
    for index in range(bisect_left(places, low), bisect_right(places, high)):
        if index < len(line) and places[index + 1] <= high:
            char = line[index]
            out.append(" " * (places[index + 1] - places[index]) if char == "\t" else shown(char))
    return "".join(out)


def _text(text: str) -> tuple[tuple[str, str], ...]:
    text = text.rstrip()
    return ((text, ""),) if text else ()


def _below(marks: list[Mark], width: int) -> list[Row]:
    """The row of marks, with the text of the last one; then the other texts, from right to left, each on its stem."""
    if not marks:
        return []
    canvas = _Canvas()
    for mark in sorted(marks, key=lambda mark: mark.is_primary):
        canvas.put(mark.start, ("^" if mark.is_primary else "-") * (mark.end - mark.start), _style(mark))
    hanging = sorted((m for m in marks if m.text), key=lambda m: (m.start, -m.end, m.is_primary))
    last = hanging[-1] if hanging else None
    end = max(mark.end for mark in marks)
    if last and last.end == end and "\n" not in last.text and end + 1 + cells(last.text) <= width:
        canvas.put(end + 1, last.text, _style(last))
        hanging.pop()
    rows = [canvas.row()]
    if hanging and len(marks) > 1:
        rows.append(_stems(hanging).row())
    while hanging:
        mark = hanging.pop()
        rows += _hung(mark, [m for m in hanging if m.start < mark.start], width)
    return rows


def _hung(mark: Mark, pending: list[Mark], width: int) -> list[Row]:
    """The text of a mark below it, broken at the width, beside the stems of texts still to come."""
    at, wide = mark.start, max(map(cells, mark.text.split("\n")))
    if at + wide > width and width - at < max(_NARROW, width // 3):
        leftmost = max((m.start + 2 for m in pending), default=0)
        at = max(leftmost, min(at, width - wide))
    rows = []
    for line in wrap(mark.text, width - at):
        canvas = _stems(pending)
        canvas.put(at, line, _style(mark))
        rows.append(canvas.row())
    return rows


def _stems(marks: Iterable[Mark]) -> _Canvas:
    canvas = _Canvas()
    for mark in marks:
        canvas.put(mark.start, "|", _style(mark))
    return canvas


def _style(mark: Mark) -> str:
    return "primary" if mark.is_primary else "other"


class _Canvas:
    """One row into which texts are written at cells; what is written later covers what was there."""

    def __init__(self) -> None:
        self._cells: dict[int, tuple[str, str]] = {}

    def put(self, at: int, text: str, style: str) -> None:
        for char in text:
            wide = cells(char)
            if wide == 0 and at - 1 in self._cells:
                self._cells[at - 1] = (self._cells[at - 1][0] + char, style)
                continue
            self._cells[at] = (char, style)
            for covered in range(at + 1, at + wide):
                self._cells[covered] = ("", style)
            at += wide

    def row(self) -> Row:
        pieces: list[tuple[str, str]] = []
        for at in range(max(self._cells, default=-1) + 1):
            char, style = self._cells.get(at, (" ", ""))
            if pieces and pieces[-1][1] == style:
                pieces[-1] = (pieces[-1][0] + char, style)
            else:
                pieces.append((char, style))
        return Row(None, tuple(pieces))
