"""Which values does the compiler compute for plans to read? Each module of this folder declares some."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

from forgeplan.compiler.discovery import import_all
from forgeplan.spec.derived import Derived
from forgeplan.spec.types import FieldType

_registry: dict[str, Derived] = {}


def derived(path: str, type: FieldType, *reads: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Declare a function of the values at `reads` as the derived value `path`; its docstring is shown to people."""

    def register(compute: Callable[..., Any]) -> Callable[..., Any]:
        _registry[path] = Derived(path, type, reads, compute, (compute.__doc__ or "").strip().rstrip("."))
        return compute

    return register


@cache
def derived_values() -> Mapping[str, Derived]:
    """All derived values, by path."""
    import_all("forgeplan.compiler.derived")
    return dict(sorted(_registry.items()))
