"""Which modules of the model does a pattern of a plan mean?

A pattern is a glob in which `*` stands for anything, dots included. It means the modules whose name it fits, with all
that is inside of them: `head`, `layers.3`, `layers.*.mlp`, `*.wk`.
"""

from __future__ import annotations

from collections.abc import Iterable
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import Any

from forgeplan.compiler.passes.parameters import parameters_of


def means(pattern: str, name: str) -> bool:
    """Whether the pattern fits the name of a module, or of one that it is inside of."""
    return any(fnmatchcase(part, pattern) for part in (name, *_around(name)))


def meant(patterns: Iterable[str], names: Iterable[str]) -> tuple[str, ...]:
    """Of the names, in their order, those that some pattern means."""
    patterns = tuple(patterns)
    return tuple(name for name in names if any(means(pattern, name) for pattern in patterns))


@lru_cache(maxsize=64)
def module_names(model: Any) -> tuple[str, ...]:
    """Names of all modules that hold parameters, themselves or inside; a tied head is a module too."""
    found: dict[str, None] = {}
    for parameter in parameters_of(model).all:
        # A stack of experts is a parameter of one module; all others have one of their own.
        owner = parameter.name if parameter.cut.ep is not None else parameter.name.rpartition(".")[0]
        found.update(dict.fromkeys((*reversed(_around(owner)), owner)))
    return (*found, *(() if "head" in found else ("head",)))


def general(name: str) -> str:
    """The name for all layers at once: `layers.*.attention.wq`."""
    return ".".join("*" if part.isdigit() else part for part in name.split("."))


@lru_cache(maxsize=65536)
def _around(name: str) -> tuple[str, ...]:
    """Names of the modules that the named one is inside of, the nearest first."""
    parts = name.split(".")
    return tuple(".".join(parts[:end]) for end in range(len(parts) - 1, 0, -1))
