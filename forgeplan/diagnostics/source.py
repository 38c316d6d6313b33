"""What text stands behind a span, and on which line and column?"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from functools import cached_property
from operator import attrgetter

from attrs import Factory, define, field

from forgeplan.diagnostics.span import Span

HIDDEN = "•"
"""Shown for each character that is not to be shown."""

_start = attrgetter("start")


@define(slots=False)
class Source:
    """One text with its line table. Lines and columns are 1-based; columns count characters."""

    name: str
    text: str
    _hidden: list[Span] = field(factory=list, eq=False, repr=False)
    """In order."""

    def hide(self, span: Span) -> None:
        """Show dots for a part of the text from now on."""
        place = bisect_left(self._hidden, span.start, key=_start)
        if span not in self._hidden[place : place + 1]:
            self._hidden.insert(place, span)

    @cached_property
    def _line_starts(self) -> list[int]:
        return [0, *(i + 1 for i, c in enumerate(self.text) if c == "\n")]

    def position(self, offset: int) -> tuple[int, int]:
        line = bisect_right(self._line_starts, offset)
        return line, offset - self._line_starts[line - 1] + 1

    def line(self, number: int) -> str:
        """Text of a 1-based line as it is shown, without its newline."""
        starts = self._line_starts
        start, end = starts[number - 1], (starts[number] if number < len(starts) else len(self.text) + 1) - 1
        text = self.text[start:end]
        nearest = bisect_left(self._hidden, start, key=_start)
        behind = bisect_left(self._hidden, end, key=_start)
        for span in self._hidden[max(nearest - 1, 0) : behind]:
            first, last = max(span.start, start) - start, min(span.end, end) - start
            if first < last:
                text = text[:first] + HIDDEN * (last - first) + text[last:]
        return text.rstrip("\r")


@define
class Sources:
    """Every text that took part in a compilation, by the name that spans use."""

    _by_name: dict[str, Source] = field(default=Factory(dict))

    def add(self, name: str, text: str) -> Source:
        source = self._by_name[name] = Source(name, text)
        return source

    def include(self, source: Source) -> None:
        """A text of another compilation, with what is hidden of it."""
        self._by_name[source.name] = source

    def get(self, name: str) -> Source | None:
        return self._by_name.get(name)

    def __iter__(self) -> Iterator[Source]:
        return iter(self._by_name.values())

    def place(self, span: Span) -> str:
        """`file:line:column`, or the bare name where no file wrote the value."""
        source = self.get(span.file)
        if source is None:
            return span.file.strip("<>")
        return "{}:{}:{}".format(span.file, *source.position(span.start))
