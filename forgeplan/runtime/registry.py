"""Which code runs a component of the plan?

The runtime half of a component registers itself under the spec class it implements; modules are found by folder.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable
from functools import cache
from typing import Any, TypeVar

from forgeplan.diagnostics.refusal import InternalError

F = TypeVar("F", bound=Callable[..., Any])

FOLDERS = {
    "model": "forgeplan.runtime.model",
    "router": "forgeplan.runtime.model.moe",
    "loss": "forgeplan.runtime.loss",
    "optimizer": "forgeplan.runtime.optim",
    "operation": "forgeplan.runtime.operations",
    "source": "forgeplan.runtime.data",
    "tokenizer": "forgeplan.runtime.data",
    "sink": "forgeplan.runtime.metrics",
}
"""Where the implementations of a kind are looked for: a package (all its modules) or a single module."""

_implementations: dict[type, Callable[..., Any]] = {}


class _Register:
    """`@register.optimizer("adamw", spec=AdamW)`: the decorated function implements that component."""

    def __getattr__(self, kind: str) -> Callable[..., Callable[[F], F]]:
        def named(name: str, *, spec: type) -> Callable[[F], F]:
            if (spec.kind, spec.tag) != (kind, name):  # type: ignore[attr-defined]
                raise ValueError(f"{spec.__name__} describes another component than the {kind} {name!r}")
            return _under(spec)

        return named


register = _Register()


def executes(operation: type) -> Callable[[F], F]:
    """The decorated function `(operation, bundle) -> None` carries out that step of the program."""
    return _under(operation)


def _under(spec: type) -> Callable[[F], F]:
    def keep(function: F) -> F:
        if _implementations.setdefault(spec, function) is not function:
            raise ValueError(f"{spec.__name__} is implemented twice")
        return function

    return keep


def implementation(kind: str, spec: object) -> Callable[..., Any]:
    """The function registered for the class of `spec`. `kind` says in which folder to look."""
    _discover(kind)
    found = _implementations.get(type(spec))
    if found is None:
        raise InternalError(f"no code is registered for the {kind} {type(spec).__name__}")
    return found


@cache
def _discover(kind: str) -> None:
    module = importlib.import_module(FOLDERS[kind])
    for found in pkgutil.walk_packages(getattr(module, "__path__", []), f"{module.__name__}."):
        importlib.import_module(found.name)
