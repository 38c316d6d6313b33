"""Which codes exist, and what is the rule of each?

A code is declared once, beside the check that reports it. `docs/diagnostics/<code>.md` is its page; a test holds
declarations and pages together.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum

from attrs import frozen

from forgeplan.diagnostics.diagnostic import Diagnostic, Fix, Label, Severity
from forgeplan.diagnostics.span import Span


class Level(Enum):
    """What is done about a lint that speaks: nothing, a warning, or an error."""

    ALLOW = "allow"
    WARN = "warn"
    DENY = "deny"


@frozen
class Code:
    """One registered rule: `id` is `FPxxxx` for errors and refusals, a dashed name for lints.

    Lints have a `level`, which a project may change; what is found is a warning until the level is looked at.
    """

    id: str
    rule: str
    severity: Severity = Severity.ERROR
    level: Level | None = None

    def at(
        self,
        span: Span | Label | None,
        message: str,
        *others: Label,
        help: str | Iterable[str] = (),
        notes: str | Iterable[str] = (),
        fixes: Fix | Iterable[Fix] = (),
        view: str = "",
    ) -> Diagnostic:
        """A diagnostic of this code. `span` is the primary place, `others` every further place that takes part."""
        first = () if span is None else (span if isinstance(span, Label) else Label(span),)
        return Diagnostic(
            self.id,
            message,
            (*first, *others),
            self.severity,
            (help,) if isinstance(help, str) else tuple(help),
            (notes,) if isinstance(notes, str) else tuple(notes),
            (fixes,) if isinstance(fixes, Fix) else tuple(fixes),
            view=view,
        )


_registry: dict[str, Code] = {}


def code(id: str, rule: str, severity: Severity = Severity.ERROR) -> Code:
    """Register a rule under its code. Raises ValueError if the code is taken by another rule."""
    return _register(Code(id, rule, severity))


def lint_code(name: str, rule: str, level: Level = Level.WARN) -> Code:
    """Register a lint with its level where no project says otherwise. Raises ValueError as `code` does."""
    return _register(Code(name, rule, Severity.WARNING, level))


def _register(new: Code) -> Code:
    if _registry.setdefault(new.id, new) != new:
        raise ValueError(f"{new.id} is declared twice, with different rules")
    return new


def find(id: str) -> Code | None:
    """A code declared by the modules imported so far."""
    return _registry.get(id)


def registered() -> dict[str, Code]:
    """All codes declared by the modules imported so far, by id."""
    return dict(sorted(_registry.items()))
