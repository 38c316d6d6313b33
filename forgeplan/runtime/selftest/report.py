"""What do a person and a program read of a self-test?

The form for programs is described by `docs/schemas/selftest.schema.json`.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from math import isfinite
from typing import Any

from forgeplan.diagnostics.paint import Paint
from forgeplan.runtime.selftest.result import Deviation, Result
from forgeplan.runtime.selftest.row import Row

JSON_FORMAT_VERSION = 1
STATUSES = {"same": "same", "differs": "differs", "failed": "failed", "not_run": "not run"}
"""By the word that programs read, the one for people."""
_INDENT = 9
_MEASURED = 15


class Table:
    """Columns as wide as the rows need; a line for each result as soon as it is there."""

    def __init__(self, rows: Sequence[Row], paint: Paint) -> None:
        self.paint = paint
        self.width = max(len(row.name) for row in rows)

    def header(self) -> str:
        return f"{'':{_INDENT}}{'layout':{self.width}}  ranks  {'largest deviation':{_MEASURED}}".rstrip()

    def line(self, result: Result) -> str:
        """The result, with what is wrong or why it was not run below it."""
        word = f"{STATUSES[result.status]:{_INDENT}}"
        word = self.paint(word, "error") if result.is_bad else word
        lines = [f"{word}{result.row.name:{self.width}}  {result.row.num_ranks:5}  {_measured(result)}".rstrip()]
        lines += [f"{'':{_INDENT}}{self.paint('→', 'code')} {text}" for text in _below(result)]
        return "\n".join(lines)

    def listed(self, row: Row) -> str:
        word = f"{'quick' if row.quick else '':{_INDENT}}"
        return f"{word}{row.name:{self.width}}  {row.num_ranks:5}  {row.mesh.describe()}".rstrip()


def summary(results: Sequence[Result]) -> str:
    """`20 of 21 layouts train what one process trains; 1 differs`."""
    counts = Counter(result.status for result in results)
    others = [f"{counts[status]} {STATUSES[status]}" for status in STATUSES if counts[status] and status != "same"]
    return "; ".join([f"{counts['same']} of {len(results)} layouts train what one process trains", *others])


def as_json(device: str, results: Iterable[Result]) -> str:
    found = list(results)
    counts = Counter(result.status for result in found)
    document = {
        "format_version": JSON_FORMAT_VERSION,
        "device": device,
        **{status: counts[status] for status in STATUSES},
        "rows": [_entry(result) for result in found],
    }
    return json.dumps(document, indent=2, ensure_ascii=False)


def _measured(result: Result) -> str:
    deviation = result.deviation
    return "" if deviation is None else measured(deviation)


def measured(deviation: Deviation) -> str:
    """`3.1e-15 of 1e-9`: the deviation, and what is allowed."""
    return f"{deviation.value:.1e} of {deviation.within:.0e}".replace("e-0", "e-")


def _below(result: Result) -> list[str]:
    if result.status == "differs" and result.deviation is not None:
        return [result.deviation.what]
    return [result.reason] if result.reason else []


def _entry(result: Result) -> dict[str, Any]:
    row, deviation = result.row, result.deviation
    return {
        "name": row.name,
        "ranks": row.num_ranks,
        "mesh": row.mesh.degrees | {"ep": row.mesh.ep},
        "quick": row.quick,
        "status": result.status,
        "deviation": None
        if deviation is None
        else {
            "what": deviation.what,
            "value": deviation.value if isfinite(deviation.value) else None,
            "within": deviation.within,
        },
        "reason": result.reason or None,
        "details": result.details or None,
        "seconds": round(result.seconds, 3),
    }
