"""What does a message about a plan carry, whoever finds the fault and whoever shows it?"""

from __future__ import annotations

from enum import Enum

from attrs import field, frozen

from forgeplan.diagnostics.span import Span


class Severity(Enum):
    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


class Safety(Enum):
    """How far a fix may be applied without asking: it keeps the meaning, or it chooses among meanings."""

    SAFE = "safe"
    ASK = "ask"


@frozen
class Label:
    """A place that takes part in the fault, with what is to be said about it there."""

    span: Span
    text: str = ""


@frozen
class Edit:
    span: Span
    replacement: str


@frozen
class Fix:
    title: str
    edits: tuple[Edit, ...]
    safety: Safety = Safety.ASK


@frozen
class Diagnostic:
    """One fault. `labels[0]` is the primary place; a relation labels every place that takes part."""

    code: str
    message: str
    labels: tuple[Label, ...] = ()
    severity: Severity = Severity.ERROR
    help: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    fixes: tuple[Fix, ...] = ()
    view: str = field(default="", kw_only=True)
    """The plan, profile or sweep cell in which the fault shows, when it is not the file as a whole."""

    @property
    def span(self) -> Span | None:
        return self.labels[0].span if self.labels else None

    def sort_key(self) -> tuple[str, int, str, str]:
        span = self.span
        return (span.file, span.start, self.code, self.message) if span else ("", 0, self.code, self.message)
