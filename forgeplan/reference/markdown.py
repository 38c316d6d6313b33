"""How does the reference of the plan language look as a page of Markdown?"""

from __future__ import annotations

from collections.abc import Iterable

from forgeplan.reference.entries import Entry, Group, Section, groups
from forgeplan.reference.language import INTRODUCTION, Table, tables
from forgeplan.reference.wording import Link

_COLUMNS = ("field", "type", "range", "default", "change", "meaning")


def markdown() -> str:
    """The whole reference; the same text wherever it is made."""
    found = groups()
    parts = ["# Reference of the plan language", *INTRODUCTION, _contents(found)]
    for group in found:
        parts += [f'<a id="{group.anchor}"></a>\n\n## {group.title}', *([group.doc] if group.doc else [])]
        parts += [part for section in group.sections for part in _section(section)]
    for table in tables():
        parts += [f'<a id="{table.anchor}"></a>\n\n## {table.title}', table.doc, _table(table)]
    return "\n\n".join(parts) + "\n"


def _contents(found: Iterable[Group]) -> str:
    lines = []
    for group in found:
        inner = ", ".join(f"[{section.title}](#{section.anchor})" for section in group.sections)
        lines.append(f"- [{group.title}](#{group.anchor}): {inner}")
    return "\n".join([*lines, *(f"- [{table.title}](#{table.anchor})" for table in tables())])


def _section(section: Section) -> list[str]:
    heading = f'<a id="{section.anchor}"></a>\n\n### `{section.usage}`'
    if not section.entries:
        return [heading, *section.doc, "It has no fields."]
    rows = [_row(entry) for entry in section.entries]
    return [heading, *section.doc, "\n".join([*_head(_COLUMNS), *rows])]


def _head(columns: Iterable[str]) -> list[str]:
    names = list(columns)
    return [f"| {' | '.join(names)} |", f"| {' | '.join('---' for _ in names)} |"]


def _row(entry: Entry) -> str:
    default = f"`{entry.default}`" if entry.default else entry.without_default
    cells = (f"`{entry.name}`", _linked(entry.type), entry.range, default, entry.change, meaning(entry))
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


def meaning(entry: Entry) -> str:
    """What a field says, with an example and what other tools call it."""
    parts = [entry.doc]
    if entry.example:
        parts.append(f"such as `{entry.example}`")
    if entry.aliases:
        parts.append("elsewhere " + ", ".join(f"`{alias}`" for alias in entry.aliases))
    return "; ".join(parts)


def _linked(text: tuple[str | Link, ...]) -> str:
    return "".join(f"[{part.text}](#{part.anchor})" if isinstance(part, Link) else part for part in text)


def _table(table: Table) -> str:
    rows = [f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in row)} |" for row in table.rows]
    return "\n".join([*_head(table.columns), *rows])
