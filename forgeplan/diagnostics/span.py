"""Which characters of which file does a message talk about?"""

from __future__ import annotations

from attrs import frozen

COMMAND_LINE = "<command line>"
SCHEMA = "<schema>"


@frozen(order=True)
class Span:
    """Half-open range of characters (code points, not bytes) in one source.

    `file` is the path as the reader knows it (relative to the working directory where possible), `std:models`
    for a shipped module, or one of the two names above for a value that no file wrote.
    """

    file: str
    start: int
    end: int

    def to(self, other: Span) -> Span:
        """The range from the start of this span to the end of `other`, in the same file."""
        return Span(self.file, min(self.start, other.start), max(self.end, other.end))


NOWHERE = Span(SCHEMA, 0, 0)
