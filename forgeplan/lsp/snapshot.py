"""What does a feature of the editor read? One version of one document, as it was parsed and checked."""

from __future__ import annotations

from functools import cached_property

from attrs import define
from lsprotocol import types as lsp

from forgeplan.analysis import Analysis
from forgeplan.diagnostics.source import Source
from forgeplan.diagnostics.span import Span
from forgeplan.dsl.parser import Parsed, parse
from forgeplan.dsl.symbols import Index, index_of
from forgeplan.lsp.positions import Positions


@define(slots=False, eq=False)
class Snapshot:
    """A document at one version. Features are pure functions of it and of an offset; none of them changes it.

    `name` is what spans call the file, `uri` what the editor calls it. `text` and `parsed` are of this version;
    `analysis` may be of an earlier one while a newer is being made, and is None before the first.
    """

    uri: str
    version: int | None
    name: str
    text: str
    encoding: str = "utf-16"
    analysis: Analysis | None = None

    @cached_property
    def parsed(self) -> Parsed:
        return parse(Source(self.name, self.text))

    @cached_property
    def index(self) -> Index:
        """The names of the document; parsed once a version."""
        return index_of(self.parsed.file, self.name)

    @cached_property
    def positions(self) -> Positions:
        return Positions(self.text, self.encoding)

    @property
    def is_current(self) -> bool:
        """Whether the analysis read exactly this text."""
        source = self.analysis.sources.get(self.name) if self.analysis else None
        return source is not None and source.text == self.text

    def offset(self, position: lsp.Position) -> int:
        return self.positions.offset(position)

    def range(self, span: Span) -> lsp.Range:
        """The range of a span of this document."""
        return self.positions.range(span)
