"""Where is an offset of a text in an editor's lines and units, and where is an editor's position in the text?

Offsets count code points, as spans do. Lines are 0-based and end at a line feed, a carriage return, or both; characters
count in the units that client and server agreed on: bytes (`utf-8`), UTF-16 code units (`utf-16`) or code points
(`utf-32`). Source: Language Server Protocol 3.17, "Position".
"""

from __future__ import annotations

import re
from bisect import bisect_right

from attrs import define, field
from lsprotocol import types as lsp

from forgeplan.diagnostics.span import Span

_LINE_END = re.compile(r"\r\n|\n|\r")


@define
class Positions:
    """The line table of one text in one encoding."""

    text: str
    encoding: str = "utf-16"
    _starts: list[int] = field(init=False)
    _ends: list[int] = field(init=False)

    def __attrs_post_init__(self) -> None:
        breaks = list(_LINE_END.finditer(self.text))
        self._starts = [0, *(found.end() for found in breaks)]
        self._ends = [*(found.start() for found in breaks), len(self.text)]

    @property
    def num_lines(self) -> int:
        return len(self._starts)

    def position(self, offset: int) -> lsp.Position:
        """The position of an offset; one beyond the text is its end."""
        offset = max(0, min(offset, len(self.text)))
        line = bisect_right(self._starts, offset) - 1
        offset = min(offset, self._ends[line])
        return lsp.Position(line, self._units(self.text[self._starts[line] : offset]))

    def offset(self, position: lsp.Position) -> int:
        """The offset of a position. Beyond a line it is the line's end, beyond the text the text's end; inside a
        character of several units it is the character's start."""
        if position.line >= len(self._starts):
            return len(self.text)
        start, end = self._starts[position.line], self._ends[position.line]
        if self.encoding == "utf-32" or self.text[start:end].isascii():
            return min(start + position.character, end)
        units = 0
        for offset in range(start, end):
            units += self._units(self.text[offset])
            if units > position.character:
                return offset
        return end

    def range(self, span: Span) -> lsp.Range:
        return lsp.Range(self.position(span.start), self.position(span.end))

    def whole(self) -> lsp.Range:
        return lsp.Range(lsp.Position(0, 0), self.position(len(self.text)))

    def line_of(self, offset: int) -> int:
        """The 0-based line of an offset."""
        return bisect_right(self._starts, offset) - 1

    def _units(self, text: str) -> int:
        if self.encoding == "utf-32" or text.isascii():
            return len(text)
        if self.encoding == "utf-8":
            return len(text.encode("utf-8", "surrogatepass"))
        return len(text.encode("utf-16-le", "surrogatepass")) // 2
