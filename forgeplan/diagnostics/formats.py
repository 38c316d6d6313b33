"""In which forms are messages printed: for a person, for a person in a hurry, for a program?

`json` is described by `docs/schemas/diagnostics.schema.json`, `sarif` by the OASIS standard 2.1.0.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path

from forgeplan.diagnostics.cells import clean
from forgeplan.diagnostics.diagnostic import Diagnostic, Severity
from forgeplan.diagnostics.forms.as_json import JSON_FORMAT_VERSION, as_json
from forgeplan.diagnostics.forms.github import github
from forgeplan.diagnostics.forms.junit import junit
from forgeplan.diagnostics.forms.sarif import sarif
from forgeplan.diagnostics.render import render
from forgeplan.diagnostics.report import Report
from forgeplan.diagnostics.source import Sources
from forgeplan.diagnostics.span import Span

__all__ = ["FORMATS", "JSON_FORMAT_VERSION", "render_all", "summary"]


def render_all(
    diagnostics: Iterable[Diagnostic],
    sources: Sources,
    *,
    format: str = "full",
    width: int = 80,
    color: bool = False,
    checked: Iterable[str] = (),
    root: Path | None = None,
) -> str:
    """All messages, sorted by file, place and code, without a line break at the end.

    `format` is one of `FORMATS`; `width` and `color` concern people only; `checked` are the files that were asked for,
    and `root` (the working directory where it is None) is the folder that programs take names to be relative to. No
    message gives an empty text, in forms that are documents an empty one. Raises ValueError for an unknown format.
    """
    if format not in FORMATS:
        raise ValueError(f"{format!r} is no format of diagnostics; these are: {', '.join(FORMATS)}")
    ordered = sorted(diagnostics, key=Diagnostic.sort_key)
    return FORMATS[format](Report(ordered, sources, width, color, tuple(checked), root or Path.cwd()))


def summary(diagnostics: Iterable[Diagnostic]) -> str:
    """`2 errors, 1 warning`; empty if there is nothing."""
    counts = Counter(diagnostic.severity for diagnostic in diagnostics)
    found = ((counts[severity], severity.value) for severity in Severity if counts[severity])
    return ", ".join(f"{number} {word}{'s' * (number > 1)}" for number, word in found)


def full(report: Report) -> str:
    return "\n\n".join(render(found, report.sources, report.width, report.color) for found in report.diagnostics)


def concise(report: Report) -> str:
    """One line for each message: `plan.forge:4:36: error[FP0303]: …`."""
    return "\n".join(_concise(diagnostic, report.sources) for diagnostic in report.diagnostics)


FORMATS: dict[str, Callable[[Report], str]] = {
    "full": full,
    "concise": concise,
    "json": as_json,
    "sarif": sarif,
    "github": github,
    "junit": junit,
}


def _concise(diagnostic: Diagnostic, sources: Sources) -> str:
    place = f"{_where(diagnostic.span, sources)}: " if diagnostic.span else ""
    view = f" (in `{diagnostic.view}`)" if diagnostic.view else ""
    text = f"{place}{diagnostic.severity.value}[{diagnostic.code}]: {diagnostic.message}{view}"
    return clean(text).replace("\n", " ")


def _where(span: Span, sources: Sources) -> str:
    return sources.place(span) if sources.get(span.file) else span.file
