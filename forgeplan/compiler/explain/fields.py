"""What is every value of a plan, what would it be by default, and who decided it?"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import groupby
from typing import Any

from forgeplan.compiler.derived import derived_values
from forgeplan.compiler.explain.inserted import with_inserted
from forgeplan.compiler.explain.page import section, shortened, table
from forgeplan.compiler.schema import setting_at
from forgeplan.compiler.wording import plan_text, written_at
from forgeplan.diagnostics.source import Sources
from forgeplan.spec import types as t
from forgeplan.spec.job import Job
from forgeplan.spec.provenance import Leaf
from forgeplan.spec.setting import DERIVED, Setting

_LONGEST_VALUE = 30


def explain_all(job: Job, sources: Sources, width: int = 80) -> str:
    """Every field by block, one line each: path, value, who set it and where, and the default it took the place of.

    Then what the compiler computed. Lines are at most `width` columns (at least 80) as long as paths and values allow.
    """
    parts, leaves = [], with_inserted(job)
    for block, paths in groupby(leaves, key=lambda path: path.partition(".")[0]):
        rows = [_row(path, leaves, sources) for path in paths]
        parts.append(section(block, _lines(rows, max(width, 80) - 2), max(width, 80)))
    computed = [_computed(path, value) for path, value in job.derived.items()]
    parts.append(section("COMPUTED", _lines(computed, max(width, 80) - 2), max(width, 80)))
    return "\n\n".join("\n".join(line.rstrip() for line in part) for part in parts) + "\n"


def fields_below(job: Job, path: str, sources: Sources, width: int) -> list[str]:
    """The same lines for the fields of a record or component, those that are computed last; none for other paths."""
    leaves, above = with_inserted(job), f"{path}."
    rows = [_row(below, leaves, sources) for below in leaves if below.startswith(above)]
    rows += [_computed(p, value) for p, value in job.derived.items() if p.startswith(above) and p not in leaves]
    return _lines(rows, width)


def _lines(rows: list[tuple[str, str, str]], width: int) -> list[str]:
    cut = [(path, shortened(value, _LONGEST_VALUE), who) for path, value, who in rows]
    return [shortened(line, width) for line in table(cut, "lll")]


def _row(path: str, leaves: Mapping[str, Leaf], sources: Sources) -> tuple[str, str, str]:
    leaf, setting = leaves[path], setting_at(path, leaves)
    return path, plan_text(leaf.value, setting.type if setting else None), _who(leaf, setting, sources)


def _computed(path: str, value: Any) -> tuple[str, str, str]:
    return path, plan_text(value, _type(path)), "computed"


def _who(leaf: Leaf, setting: Setting | None, sources: Sources) -> str:
    if not leaf.written:
        return leaf.origin.layer.removeprefix("schema ")
    place = written_at(leaf.origin.span, sources) or leaf.origin.layer
    has_default = setting is not None and not setting.required and setting.default is not DERIVED
    return f"{place} (default {setting.default})" if has_default and setting is not None else place


def _type(path: str) -> t.FieldType | None:
    found = derived_values().get(path)
    return found.type if found is not None else None
