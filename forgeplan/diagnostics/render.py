"""What does a message look like on a terminal?

error[FP0303]: `mesh.dp_shard` is set twice: 4 and 3
  --> plan.forge:4:26
 4 |   mesh = { dp_shard = 4, dp_shard = 3 }
   |            --------      ^^^^^^^^ 3
   |            |
   |            4
   = help: keep one of the two
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from forgeplan.diagnostics.cells import cells, clean, wrap
from forgeplan.diagnostics.diagnostic import Diagnostic, Label
from forgeplan.diagnostics.excerpt import Row, last_line, rows_of
from forgeplan.diagnostics.paint import Paint, painter
from forgeplan.diagnostics.source import Sources

_LEAST_WIDTH = 40


def render(diagnostic: Diagnostic, sources: Sources, width: int = 80, color: bool = False) -> str:
    """The full form: message, every place with its text, help and notes; no line break at the end.

    `width` counts cells; below 40 it is taken as 40. Only words that cannot be broken, such as paths, go beyond it.
    """
    width = max(width, _LEAST_WIDTH)
    paint = painter(color)
    gutter = _gutter(diagnostic, sources)
    lines = _heading(diagnostic, width, paint)
    for index, labels in enumerate(_by_file(diagnostic.labels)):
        lines += _place(labels, diagnostic, sources, gutter, width, paint, is_first=index == 0)
    for word, texts in (("help", _helps(diagnostic)), ("note", diagnostic.notes), ("in", _view(diagnostic))):
        for text in texts:
            lines += _remark(word, text, gutter, width, paint)
    return "\n".join(lines)


def _helps(diagnostic: Diagnostic) -> Sequence[str]:
    return diagnostic.help or [fix.title for fix in diagnostic.fixes]


def _view(diagnostic: Diagnostic) -> Sequence[str]:
    return [f"`{diagnostic.view}`"] if diagnostic.view else []


def _heading(diagnostic: Diagnostic, width: int, paint: Paint) -> list[str]:
    severity = diagnostic.severity.value
    name = f"{severity}[{diagnostic.code}]"
    first, *others = wrap(f"{name}: {clean(diagnostic.message)}", width, "    ")
    rest = first.removeprefix(name)
    return [paint(name, severity) + paint(rest, "title"), *(paint(line, "title") for line in others)]


def _by_file(labels: Sequence[Label]) -> list[list[Label]]:
    """Labels of one file together; the primary label's file first, the others as they are named."""
    files: dict[str, list[Label]] = {}
    for label in labels:
        files.setdefault(label.span.file, []).append(label)
    return list(files.values())


def _gutter(diagnostic: Diagnostic, sources: Sources) -> int:
    known = ((sources.get(label.span.file), label) for label in diagnostic.labels)
    return max([2, *(len(str(last_line(source, label.span))) for source, label in known if source)])


def _place(
    labels: list[Label],
    diagnostic: Diagnostic,
    sources: Sources,
    gutter: int,
    width: int,
    paint: Paint,
    is_first: bool,
) -> list[str]:
    source = sources.get(labels[0].span.file)
    arrow = " " * gutter + ("--> " if is_first else "::: ")
    lines = [] if is_first else [paint(" " * (gutter + 1) + "|", "frame")]
    if source is None:
        return [*lines, *_unwritten(arrow, labels, width, paint)]
    lines.append(paint(arrow, "frame") + clean(sources.place(labels[0].span)))
    rows = rows_of(source, labels, diagnostic.labels[0], width - gutter - 3)
    return [*lines, *(_row(row, gutter, diagnostic.severity.value, paint) for row in rows)]


def _unwritten(arrow: str, labels: Iterable[Label], width: int, paint: Paint) -> list[str]:
    """Places that no text stands behind: a default of the schema, a file that could not be read."""
    lines: list[str] = []
    for label in labels:
        name = clean(label.span.file)
        text = f": {clean(label.text)}" if label.text else ""
        first, *others = wrap(arrow + name + text, width, " " * cells(arrow)) if text else [arrow + name]
        lines += [paint(arrow, "frame") + first.removeprefix(arrow), *others]
    return lines


def _row(row: Row, gutter: int, severity: str, paint: Paint) -> str:
    if row.is_gap:
        return paint("...", "frame")
    number = "" if row.number is None else str(row.number)
    edge = paint(f"{number:>{gutter}} |", "frame")
    text = "".join(paint(text, severity if style == "primary" else style) for text, style in row.pieces)
    return f"{edge} {text}" if text else edge


def _remark(word: str, text: str, gutter: int, width: int, paint: Paint) -> list[str]:
    lead = f"{' ' * (gutter + 1)}= {word}: "
    first, *others = wrap(clean(text), width - len(lead), "")
    head = paint(f"{' ' * (gutter + 1)}=", "frame") + paint(f" {word}", "title") + ": "
    return [head + first, *(" " * len(lead) + line for line in others)]
