"""Which files of `docs` are made from the code, and what should be in them? `make reference` writes them anew."""

from __future__ import annotations

from collections.abc import Callable

from forgeplan.reference.diagnostics import diagnostics_page
from forgeplan.reference.pages import page
from tests.house.tree import ROOT

GENERATED: dict[str, Callable[[], str]] = {
    "docs/reference/language.md": lambda: page("markdown"),
    "docs/reference/diagnostics.md": diagnostics_page,
    "docs/schemas/job.schema.json": lambda: page("json"),
}
"""By path from the root of the repository."""


def write_all() -> None:
    for path, made in GENERATED.items():
        (ROOT / path).write_text(made(), encoding="utf-8")
