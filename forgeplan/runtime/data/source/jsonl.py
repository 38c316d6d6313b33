"""How are JSON lines read? Each line is an object, and one of its columns is a document."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from forgeplan.diagnostics.data_codes import COLUMNS
from forgeplan.diagnostics.refusal import Refusal
from forgeplan.runtime.data.documents import DocumentSource
from forgeplan.runtime.data.files import as_text, digest_of, files_of, unreadable
from forgeplan.runtime.data.samples import Setting
from forgeplan.runtime.registry import register
from forgeplan.spec.source.files import JsonLines


@register.source("jsonl", spec=JsonLines)
def open_jsonl(spec: JsonLines, setting: Setting) -> DocumentSource:
    files = files_of(spec.path, setting)

    def texts() -> Iterator[str]:
        for path in files:
            yield from _texts(path, spec.column, setting)

    digest = digest_of(files, setting, "column", spec.column)
    return DocumentSource(texts, digest, spec.path, setting, shuffle=spec.shuffle, files=files)


def _texts(path: Path, column: str, setting: Setting) -> Iterator[str]:
    try:
        with path.open("rb") as lines:
            for number, line in enumerate(lines, 1):
                if line.strip():
                    yield _text(line, f"{setting.shown(path)}, line {number}", column, setting)
    except OSError as error:
        raise unreadable(path, setting, error) from error


def _text(line: bytes, where: str, column: str, setting: Setting) -> str:
    """The column of one line. Raises Refusal FP0616 if the line has none."""
    try:
        record = json.loads(as_text(line.rstrip(b"\r\n"), where, setting))
    except json.JSONDecodeError as error:
        message = f"source `{setting.name}`: {where} is not JSON: {error.msg} at column {error.colno}"
        raise Refusal(COLUMNS, message) from error
    except RecursionError as error:
        raise Refusal(COLUMNS, f"source `{setting.name}`: {where} is not JSON: it is nested too deeply") from error
    if not isinstance(record, dict):
        raise Refusal(COLUMNS, f"source `{setting.name}`: {where} is not an object but {_kind(record)}")
    if column not in record:
        there = ", ".join(sorted(record)) or "none"
        raise Refusal(COLUMNS, f"source `{setting.name}`: {where} has no column {column!r}; it has {there}")
    if not isinstance(record[column], str):
        raise Refusal(
            COLUMNS, f"source `{setting.name}`: {where}: column {column!r} is not text but {_kind(record[column])}"
        )
    return str(record[column])


def _kind(value: object) -> str:
    names = {dict: "an object", list: "a list", bool: "true or false", int: "a number", float: "a number"}
    return names.get(type(value), "text" if isinstance(value, str) else "null")
