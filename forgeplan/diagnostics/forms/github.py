"""What are messages as workflow commands of GitHub Actions, which shows them at the lines of a change?"""

from __future__ import annotations

from forgeplan.diagnostics.cells import clean
from forgeplan.diagnostics.diagnostic import Diagnostic, Severity
from forgeplan.diagnostics.report import Report, is_file

_COMMANDS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.NOTE: "notice"}
_DATA = {"%": "%25", "\r": "%0D", "\n": "%0A"}
_PROPERTY = {**_DATA, ":": "%3A", ",": "%2C"}


def github(report: Report) -> str:
    """One line for each message: `::error file=…,line=…,endLine=…,col=…,endColumn=…,title=…::…`."""
    return "\n".join(_command(diagnostic, report) for diagnostic in report.diagnostics)


def _command(diagnostic: Diagnostic, report: Report) -> str:
    title = f"forgeplan {diagnostic.code}" + (f" in {diagnostic.view}" if diagnostic.view else "")
    properties = {**_place(diagnostic, report), "title": title}
    shown = ",".join(f"{key}={_escaped(clean(str(value)), _PROPERTY)}" for key, value in properties.items())
    lines = [diagnostic.message, *(f"help: {line}" for line in diagnostic.help)]
    lines += [f"note: {line}" for line in diagnostic.notes]
    return f"::{_COMMANDS[diagnostic.severity]} {shown}::{_escaped(clean(chr(10).join(lines)), _DATA)}"


def _place(diagnostic: Diagnostic, report: Report) -> dict[str, object]:
    """A column says something only where the place ends on the line on which it begins."""
    span = diagnostic.span
    if span is None or not is_file(span.file):
        return {}
    position = report.position(span)
    if position is None:
        return {"file": report.name(span.file)}
    line, column, end_line, end_column = position
    columns = {"col": column, "endColumn": end_column} if line == end_line else {}
    return {"file": report.name(span.file), "line": line, "endLine": end_line, **columns}


def _escaped(text: str, marks: dict[str, str]) -> str:
    return "".join(marks.get(char, char) for char in text)
