"""Which versions of the plan format can be read, and how does an older one become the present one?"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from forgeplan.diagnostics.codes import code
from forgeplan.diagnostics.refusal import Refusal
from forgeplan.plan.execution_plan import FORMAT_VERSION

Migration = Callable[[dict[str, Any]], dict[str, Any]]

FP1002 = code("FP1002", "the plan's format version is known")

MIGRATIONS: dict[int, Migration] = {}
"""From a version to the next one, on JSON values."""


def to_present(document: dict[str, Any]) -> dict[str, Any]:
    """The document in the present version. Raises Refusal FP1002 for a version that is not known."""
    version = document.get("format_version")
    if not isinstance(version, int) or version > FORMAT_VERSION or version < min(MIGRATIONS, default=FORMAT_VERSION):
        raise Refusal(
            FP1002,
            f"this plan has format version {version!r}, and this forgeplan reads version {known_versions()}",
            "compile the plan file again with this forgeplan, or run it with the version that wrote it",
        )
    while version < FORMAT_VERSION:
        document, version = MIGRATIONS[version](document), version + 1
    return document


def known_versions() -> str:
    return ", ".join(map(str, [*sorted(MIGRATIONS), FORMAT_VERSION]))
