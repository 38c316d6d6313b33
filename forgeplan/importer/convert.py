"""From the text of a foreign configuration to the text of a plan, with a report of every key."""

from __future__ import annotations

from pathlib import PurePath
from textwrap import wrap
from typing import Any

from attrs import frozen

from forgeplan.diagnostics.refusal import UsageError
from forgeplan.dsl.formatter import format_text
from forgeplan.importer.draft import Draft, identifier
from forgeplan.importer.huggingface import HUGGINGFACE
from forgeplan.importer.kempnerforge import KEMPNERFORGE
from forgeplan.importer.reading import detect, flatten, read
from forgeplan.importer.report import Outcome, Report, Row
from forgeplan.importer.rules import Format, Importing, Options
from forgeplan.importer.spelling import shortened
from forgeplan.importer.torchtitan import TORCHTITAN

FORMATS: dict[str, Format] = {f.name: f for f in (KEMPNERFORGE, TORCHTITAN, HUGGINGFACE)}
_REMARK = 94


@frozen
class Imported:
    """What came of a file. `text` is the plan in its one form, or None where `report.refused` says why not."""

    text: str | None
    report: Report
    is_open: bool = False
    """Whether nothing says how many machines there are."""


def convert(text: str, path: str, options: Options, format: str | None = None) -> Imported:
    """Convert a configuration; `path` names it in messages and gives the plan its name.

    Raises UsageError for what is no such file, for a value of the wrong kind, and for machines that do not fit.
    """
    tables = read(text, path)
    reader = FORMATS[format or detect(tables, path)]
    _check_sections(tables, reader, path)
    name = identifier(_stem(path, tables))
    nulls: dict[str, Any] = {}
    values: dict[str, Any] = {}
    for key, value in flatten(tables):
        (nulls if value is None else values)[key] = value
    this = Importing(path, reader.name, values, options, Draft(name))
    reader.convert(this)
    rows = {**this.rows, **{key: Row(key, "null", Outcome.IGNORED, "", "left to its default") for key in nulls}}
    ordered = tuple(rows[key] for key, _ in flatten(tables))
    refused = tuple(this.refused)
    report = Report(
        path, reader.name, "" if refused else name, ordered, tuple(this.defaults), tuple(this.assumed), refused
    )
    if refused:
        return Imported(None, report)
    this.draft.remarks = [*_remarks(report)]
    return Imported(format_text(this.draft.text(), name), report, this.is_open)


def _check_sections(tables: dict[str, Any], reader: Format, path: str) -> None:
    """Raises UsageError where a value stands for a whole section."""
    sections = {section for section, dot, _ in (key.partition(".") for key in reader.rules) if dot}
    plain = {key for key in reader.rules if "." not in key}
    for key, value in tables.items():
        if key in sections - plain and not (value is None or isinstance(value, dict)):
            raise UsageError(f"{path}: {key} is {shortened(value)}, and must be a table")


def _stem(path: str, tables: dict[str, object]) -> str:
    pure = PurePath(path)
    if pure.name == "config.json":
        return pure.parent.name or str(tables.get("model_type", "model"))
    return pure.stem


def _remarks(report: Report) -> list[str]:
    """Where the plan comes from and what it lacks, for those who read it without the report."""
    lines = [f"Made from {PurePath(report.file).name}, a configuration of {report.format}."]
    lost = report.of(Outcome.LOST)
    if lost:
        lines += ["", "Without an equivalent:"]
        lines += [line for row in lost for line in _wrapped(f"{row.key} = {row.value}: {row.why}")]
    if report.assumed:
        lines += ["", "Assumed, as the file does not say it:"]
        lines += [line for text in report.assumed for line in _wrapped(text)]
    return [*("".join(c if c.isprintable() else " " for c in line) for line in lines), ""]


def _wrapped(text: str) -> list[str]:
    return wrap(text, _REMARK, initial_indent="  ", subsequent_indent="    ", break_on_hyphens=False)
