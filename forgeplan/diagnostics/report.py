"""What does a format get to print: messages in order, the texts they speak of, and the place they are printed to?"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from attrs import field, frozen

from forgeplan.diagnostics.diagnostic import Diagnostic
from forgeplan.diagnostics.source import Sources
from forgeplan.diagnostics.span import Span


@frozen
class Report:
    """`width` (columns) and `color` concern people; `checked` and `root` concern programs."""

    diagnostics: Sequence[Diagnostic]
    sources: Sources
    width: int = 80
    color: bool = False
    checked: tuple[str, ...] = ()
    """Names of the plan files that were asked for, also those without a message."""
    root: Path = field(factory=Path.cwd)
    """The folder that programs take the names of files to be relative to."""

    @property
    def files(self) -> tuple[str, ...]:
        """The files that were asked for, and further ones in which something was found."""
        found = (d.span.file for d in self.diagnostics if d.span and is_file(d.span.file))
        return tuple(dict.fromkeys((*self.checked, *found)))

    def name(self, file: str) -> str:
        """The path of a file from `root`, with `/`; the whole path where it does not lie below."""
        path = Path.cwd() / file
        return (path.relative_to(self.root) if path.is_relative_to(self.root) else path).as_posix()

    def position(self, span: Span) -> tuple[int, int, int, int] | None:
        """Line and column of the start and of the (open) end, from 1, in characters; None without a text behind it."""
        source = self.sources.get(span.file)
        return (*source.position(span.start), *source.position(span.end)) if source else None


def is_file(name: str) -> bool:
    """Whether a name that spans use is a path, not a shipped module, the command line or the schema."""
    return not name.startswith(("<", "std:"))
