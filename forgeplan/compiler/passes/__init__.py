"""Which analyses are there? Every module of this folder declares its own; `load` imports them once."""

from __future__ import annotations

import importlib
from functools import cache

MODULES = ("mesh", "parameters", "units", "shards", "batch", "horizon", "flops", "structure", "program")


@cache
def load() -> None:
    for module in MODULES:
        importlib.import_module(f"forgeplan.compiler.passes.{module}")
