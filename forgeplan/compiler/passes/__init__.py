"""Which analyses are there? Every module of this folder declares its own; `load` imports them once."""

from __future__ import annotations

from functools import cache

from forgeplan.compiler.discovery import import_all


@cache
def load() -> None:
    import_all("forgeplan.compiler.passes")
