"""Helpers of the syntax tests: read a text and say what was reported where."""

from __future__ import annotations

from forgeplan.diagnostics.diagnostic import Diagnostic
from forgeplan.diagnostics.source import Source
from forgeplan.dsl import syntax
from forgeplan.dsl.parser import Parsed, parse, parse_expression

HEAD = "forge 1\nplan p {\n"


def read(text: str) -> Parsed:
    return parse(Source("t.forge", text))


def in_plan(lines: str) -> str:
    """The lines inside a plan; the first of them is line 3, unindented text keeps its columns."""
    return f"{HEAD}{lines}\n}}\n"


def clean(text: str) -> syntax.File:
    """The tree of a text that must have no faults."""
    parsed = read(text)
    assert not parsed.diagnostics, parsed.diagnostics
    return parsed.file


def statements(lines: str) -> tuple[syntax.Item, ...]:
    plan = clean(in_plan(lines)).items[0]
    assert isinstance(plan, syntax.Plan)
    return plan.body.items


def expression(text: str) -> syntax.Expr:
    value, faults = parse_expression(text, "<command line>")
    assert not faults, faults
    return value


def faults(text: str) -> list[tuple[str, str]]:
    """Code and the text under the primary label, in order."""
    return [(fault.code, marked(text, fault)) for fault in read(text).diagnostics]


def marked(text: str, fault: Diagnostic) -> str:
    assert fault.span is not None
    return text[fault.span.start : fault.span.end]


def repaired(text: str) -> str:
    """The text with the first fix of every fault applied."""
    edits = [edit for fault in read(text).diagnostics for fix in fault.fixes[:1] for edit in fix.edits]
    for edit in sorted(edits, key=lambda e: e.span.start, reverse=True):
        text = text[: edit.span.start] + edit.replacement + text[edit.span.end :]
    return text
