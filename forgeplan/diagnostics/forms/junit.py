"""What are messages as a JUnit report, which most CI systems read? A suite a file, a case a message.

Errors are failures. Warnings are cases that pass and say something, as they fail no command either.
"""

from __future__ import annotations

from collections.abc import Sequence

from forgeplan.diagnostics.cells import clean
from forgeplan.diagnostics.diagnostic import Diagnostic, Severity
from forgeplan.diagnostics.render import render
from forgeplan.diagnostics.report import Report, is_file

_MARKS = {"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "\n": "&#10;"}
_WIDTH = 100
_ELSEWHERE = "forgeplan"
"""The suite of what is in no file, such as the command line."""


def junit(report: Report) -> str:
    """The report, with one passing case for each file in which nothing was found."""
    by_file: dict[str, list[Diagnostic]] = {file: [] for file in report.files}
    for found in report.diagnostics:
        file = found.span.file if found.span and is_file(found.span.file) else _ELSEWHERE
        by_file.setdefault(file, []).append(found)
    suites = [line for file, found in by_file.items() for line in _suite(file, found, report)]
    cases = sum(max(1, len(found)) for found in by_file.values())
    head = _tag("testsuites", name="forgeplan lint", **_counts(cases, report.diagnostics))
    return "\n".join(['<?xml version="1.0" encoding="UTF-8"?>', head, *suites, "</testsuites>"])


def _suite(file: str, found: list[Diagnostic], report: Report) -> list[str]:
    name = file if file == _ELSEWHERE else report.name(file)
    cases = [line for one in found for line in _case(name, one, report)]
    cases = cases or [_tag("testcase", "/", name="nothing found", classname=name, file=name, time="0")]
    return [_tag("testsuite", name=name, **_counts(max(1, len(found)), found)), *cases, "</testsuite>"]


def _case(file: str, found: Diagnostic, report: Report) -> list[str]:
    position = report.position(found.span) if found.span else None
    line = {"line": str(position[0])} if position else {}
    where = f" at {position[0]}:{position[1]}" if position else ""
    view = f" in {found.view}" if found.view else ""
    text = _escaped(render(found, report.sources, _WIDTH), keep='\n"')
    head = _tag("testcase", name=f"{found.code}{where}{view}", classname=file, file=file, **line, time="0")
    if found.severity is Severity.ERROR:
        said = [_tag("failure", type=found.code, message=found.message) + text, "</failure>"]
    else:
        said = ["<system-out>" + text, "</system-out>"]
    return [head, *said, "</testcase>"]


def _counts(cases: int, found: Sequence[Diagnostic]) -> dict[str, str]:
    failures = sum(one.severity is Severity.ERROR for one in found)
    return {"tests": str(cases), "failures": str(failures), "errors": "0", "skipped": "0", "time": "0"}


def _tag(tag: str, end: str = "", /, **attributes: str) -> str:
    shown = "".join(f' {key}="{_escaped(value)}"' for key, value in attributes.items())
    return f"<{tag}{shown}{end}>"


def _escaped(text: str, keep: str = "") -> str:
    """XML has no way to write control characters and half surrogates: they are shown by name."""
    return "".join(char if char in keep else _MARKS.get(char, char) for char in clean(text))
