"""How does the reference of the plan language look as one page that needs nothing else?"""

from __future__ import annotations

import re
from collections.abc import Iterable
from html import escape

from forgeplan.reference.entries import Entry, Group, Section, groups
from forgeplan.reference.language import INTRODUCTION, Table, tables
from forgeplan.reference.markdown import meaning
from forgeplan.reference.wording import Link

_STYLE = """
:root { color-scheme: light dark; --line: #8884; --faint: #8882; }
body { font: 15px/1.5 system-ui, sans-serif; margin: 0; display: flex; }
nav { position: sticky; top: 0; height: 100vh; overflow: auto; flex: 0 0 15rem; padding: 1rem; box-sizing: border-box;
  border-right: 1px solid var(--line); font-size: 13px; }
nav ul { list-style: none; margin: 0 0 .8rem; padding: 0 0 0 .8rem; }
main { padding: 1rem 2rem 4rem; max-width: 75rem; min-width: 0; }
code { font: 13px ui-monospace, monospace; background: var(--faint); border-radius: 3px; padding: 0 .25em; }
h2 { border-bottom: 1px solid var(--line); margin-top: 3rem; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-size: 14px; }
th, td { text-align: left; vertical-align: top; padding: .25rem .8rem .25rem 0; border-bottom: 1px solid var(--line); }
a { color: inherit; }
@media (max-width: 50rem) { body { display: block; } nav { position: static; height: auto; } }
""".strip()


def html() -> str:
    """The whole reference as HTML; styles are inside, nothing is loaded."""
    found = groups()
    body = [f"<p>{_inline(paragraph)}</p>" for paragraph in INTRODUCTION]
    for group in found:
        body.append(f'<h2 id="{group.anchor}">{escape(group.title)}</h2>')
        body += [f"<p>{_inline(group.doc)}</p>"] if group.doc else []
        body += [line for section in group.sections for line in _section(section)]
    for table in tables():
        body += [f'<h2 id="{table.anchor}">{escape(table.title)}</h2>', f"<p>{_inline(table.doc)}</p>", _table(table)]
    return "\n".join(
        [
            "<!doctype html>",
            '<html lang="en"><head><meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width">',
            f"<title>Reference of the plan language</title><style>{_STYLE}</style></head><body>",
            _navigation(found),
            "<main><h1>Reference of the plan language</h1>",
            *body,
            "</main></body></html>\n",
        ]
    )


def _navigation(found: Iterable[Group]) -> str:
    lines = ["<nav>"]
    for group in found:
        inner = "".join(f'<li><a href="#{s.anchor}">{escape(s.title)}</a></li>' for s in group.sections)
        lines.append(f'<a href="#{group.anchor}">{escape(group.title)}</a><ul>{inner}</ul>')
    more = "".join(f'<li><a href="#{table.anchor}">{escape(table.title)}</a></li>' for table in tables())
    return "\n".join([*lines, f"<ul>{more}</ul></nav>"])


def _section(section: Section) -> list[str]:
    lines = [f'<h3 id="{section.anchor}"><code>{escape(section.usage)}</code></h3>']
    lines += [f"<p>{_inline(paragraph)}</p>" for paragraph in section.doc]
    if not section.entries:
        return [*lines, "<p>It has no fields.</p>"]
    rows = [_cells(_entry(section, entry)) for entry in section.entries]
    return [*lines, _made(("field", "type", "range", "default", "change", "meaning"), rows)]


def _entry(section: Section, entry: Entry) -> list[str]:
    name = f'<code id="{section.anchor}.{entry.name}">{escape(entry.name)}</code>'
    default = f"<code>{escape(entry.default)}</code>" if entry.default else escape(entry.without_default)
    return [name, _linked(entry.type), escape(entry.range), default, escape(entry.change), _inline(meaning(entry))]


def _linked(text: tuple[str | Link, ...]) -> str:
    return "".join(
        f'<a href="#{part.anchor}">{escape(part.text)}</a>' if isinstance(part, Link) else _inline(part)
        for part in text
    )


def _table(table: Table) -> str:
    return _made(table.columns, [_cells(map(_inline, row)) for row in table.rows])


def _made(columns: Iterable[str], rows: Iterable[str]) -> str:
    head = "".join(f"<th>{escape(column)}</th>" for column in columns)
    return f'<div class="wide"><table><tr>{head}</tr>\n' + "\n".join(rows) + "\n</table></div>"


def _cells(cells: Iterable[str]) -> str:
    return f"<tr>{''.join(f'<td>{cell}</td>' for cell in cells)}</tr>"


def _inline(text: str) -> str:
    """Text with `code` in backquotes and links into this page; a link to another file keeps its words."""
    shown = re.sub(r"`([^`]*)`", r"<code>\1</code>", escape(text, quote=False))
    shown = re.sub(r"\[([^\]]*)\]\((#[^)]*)\)", r'<a href="\2">\1</a>', shown)
    return re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", shown)
