"""Which components exist, by kind and name?

The spec half of a component is found here by folder: every module below `forgeplan/spec/` is imported once, on
first use.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable
from functools import cache
from typing import TypeVar

T = TypeVar("T", bound=type)

_components: dict[tuple[str, str], type] = {}
_of_kind: dict[str, dict[str, type]] = {}
_aliases: dict[tuple[str, str], str] = {}


def component(kind: str, name: str, aliases: tuple[str, ...] = ()) -> Callable[[T], T]:
    """Register an attrs class as the component `name` of `kind`. Raises ValueError if the pair is taken.

    `aliases` are what other tools call it, in lower case: they get a suggestion, never acceptance.
    """

    def register(block: T) -> T:
        if _components.setdefault((kind, name), block) is not block:
            raise ValueError(f"the {kind} {name!r} is registered twice")
        _of_kind.pop(kind, None)
        block.kind, block.tag = kind, name  # type: ignore[attr-defined]
        _aliases.update({(kind, alias): name for alias in aliases})
        return block

    return register


def components(kind: str) -> dict[str, type]:
    """All components of a kind, by name."""
    _discover()
    if kind not in _of_kind:
        _of_kind[kind] = {name: block for (k, name), block in sorted(_components.items()) if k == kind}
    return _of_kind[kind]


def component_called(alias: str, kind: str) -> str | None:
    """The component of a kind that other tools call so, in any case of letters."""
    _discover()
    return _aliases.get((kind, alias.lower()))


def kinds_of(name: str) -> list[str]:
    """The kinds under which a component name is registered."""
    _discover()
    return sorted(k for k, n in _components if n == name)


def kinds() -> list[str]:
    _discover()
    return sorted({k for k, _ in _components})


@cache
def _discover() -> None:
    import forgeplan.spec

    for module in pkgutil.walk_packages(forgeplan.spec.__path__, "forgeplan.spec."):
        importlib.import_module(module.name)
