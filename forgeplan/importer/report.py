"""What became of each key of a foreign configuration?"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum
from textwrap import wrap
from typing import Any

from attrs import frozen


class Outcome(Enum):
    """The fate of a key; the value is the heading of the report."""

    TAKEN = "taken"
    CHANGED = "taken, and changed"
    LOST = "without an equivalent"
    IGNORED = "not needed"
    UNREAD = "not read"


FORMAT_VERSION = 1
"""Of the report as JSON: `docs/schemas/import.schema.json`."""
_BRIEF = (Outcome.IGNORED, Outcome.UNREAD)


@frozen
class Row:
    """One key of the source."""

    key: str
    value: str
    """As a person would write it, shortened."""
    outcome: Outcome
    became: str = ""
    """The statement of the plan, `batch.length = 8Ki tokens`; empty where there is none."""
    why: str = ""


@frozen
class Report:
    """All keys of a source in its order, and what it left open."""

    file: str
    format: str
    plan: str
    """Name of the plan; empty where none could be made."""
    rows: tuple[Row, ...]
    defaults: tuple[str, ...]
    """Keys that the file leaves out, with what its program takes then: `training.steps: budget.steps = 10k steps`."""
    assumed: tuple[str, ...]
    """What the source does not say and the plan must: one sentence each."""
    refused: tuple[str, ...] = ()
    """Why there is no plan."""

    def of(self, outcome: Outcome) -> tuple[Row, ...]:
        return tuple(row for row in self.rows if row.outcome is outcome)


def to_json(report: Report) -> dict[str, Any]:
    """The report as plain JSON values."""
    return {
        "file": report.file,
        "format": report.format,
        "plan": report.plan or None,
        "keys": [
            {
                "key": row.key,
                "value": row.value,
                "outcome": row.outcome.name.lower(),
                "became": row.became or None,
                "why": row.why or None,
            }
            for row in report.rows
        ],
        "defaults": list(report.defaults),
        "assumed": list(report.assumed),
        "refused": list(report.refused),
    }


def render(report: Report, width: int) -> str:
    """The report for a person, without a line feed at its end."""
    blocks = []
    if report.refused:
        blocks.append(_block("no plan can be made", [[why] for why in report.refused], width))
    for outcome in Outcome:
        rows = report.of(outcome)
        entries = _by_reason(rows) if outcome in _BRIEF else [_entry(row) for row in rows]
        if entries:
            blocks.append(_block(outcome.value, entries, width))
    if report.defaults:
        heading = f"taken from the defaults of {report.format}"
        blocks.append(_block(heading, [[text] for text in report.defaults], width))
    if report.assumed:
        blocks.append(_block("assumed, as the file does not say it", [[text] for text in report.assumed], width))
    return "\n\n".join(blocks)


def _by_reason(rows: Iterable[Row]) -> list[list[str]]:
    """Keys of which nothing comes, together where the reason is the same."""
    keys: dict[str, list[str]] = {}
    for row in rows:
        keys.setdefault(row.why, []).append(f"{row.key} = {row.value}")
    return [[", ".join(shown), why] for why, shown in keys.items()]


def _entry(row: Row) -> list[str]:
    head = f"{row.key} = {row.value}"
    return [f"{head}  →  {row.became}" if row.became else head, *([row.why] if row.why else [])]


def _block(heading: str, entries: Iterable[list[str]], width: int) -> str:
    lines = [heading]
    for first, *rest in entries:
        lines += wrap(first, width, initial_indent="  ", subsequent_indent="    ", break_on_hyphens=False)
        for text in rest:
            lines += wrap(text, width, initial_indent="      ", subsequent_indent="      ", break_on_hyphens=False)
    return "\n".join(lines)
