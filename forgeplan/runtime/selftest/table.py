"""Which layouts are held to one process, here and on a user's machine?"""

from __future__ import annotations

from collections.abc import Iterable
from fnmatch import fnmatchcase

from forgeplan.diagnostics.refusal import UsageError
from forgeplan.diagnostics.suggest import did_you_mean, nearest
from forgeplan.runtime.selftest.row import Row
from forgeplan.runtime.selftest.rows.context import CONTEXT
from forgeplan.runtime.selftest.rows.dense import LAYOUTS, LOSSES, MODELS, SCHEDULES, SINGLE
from forgeplan.runtime.selftest.rows.experts import EXPERTS
from forgeplan.runtime.selftest.rows.float8 import FLOAT8
from forgeplan.runtime.selftest.rows.pipeline import PIPELINE
from forgeplan.runtime.selftest.rows.tensor import TENSOR
from forgeplan.runtime.selftest.rows.wrapped import COMPILE, RECOMPUTE

TABLE: tuple[Row, ...] = (
    *LAYOUTS, *MODELS, *TENSOR, *CONTEXT, *EXPERTS, *PIPELINE, *RECOMPUTE, *COMPILE, *FLOAT8, *LOSSES,
    *SCHEDULES, *SINGLE,
)  # fmt: skip


def chosen(patterns: Iterable[str], every: bool) -> list[Row]:
    """Rows whose name contains one of the patterns (`*` is any text); without patterns the quick rows, or all.

    Raises UsageError for a pattern that no row has.
    """
    wanted = [pattern.casefold() for pattern in patterns]
    for pattern in wanted:
        if not any(_has(row, pattern) for row in TABLE):
            meant = nearest(pattern, [row.name for row in TABLE])
            help = did_you_mean(meant) if meant else "`forgeplan selftest --list --all` shows all names"
            raise UsageError(f"no row of the table has {pattern!r} in its name\n  help: {help}")
    if wanted:
        return [row for row in TABLE if any(_has(row, pattern) for pattern in wanted)]
    return [row for row in TABLE if every or row.quick]


def _has(row: Row, pattern: str) -> bool:
    return fnmatchcase(row.name.casefold(), f"*{pattern}*")
