"""Which function brings a source or a tokenizer of the plan to life?

A component has a torch-free half under `forgeplan/spec/`; its other half is a function below this folder that is marked
with `@opens(Spec)`. The two meet by kind and name, and are found by folder.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable
from functools import cache
from typing import Any, TypeVar

from forgeplan.diagnostics.refusal import InternalError

F = TypeVar("F", bound=Callable[..., Any])

_halves: dict[tuple[str, str], Callable[..., Any]] = {}


def opens(spec: type) -> Callable[[F], F]:
    """Mark a function as the runtime half of a component. Raises ValueError if the component already has one."""

    def register(function: F) -> F:
        at = (spec.kind, spec.tag)  # type: ignore[attr-defined]
        if _halves.setdefault(at, function) is not function:
            raise ValueError(f"the {at[0]} {at[1]!r} has two runtime halves")
        return function

    return register


def half_of(spec: Any) -> Callable[..., Any]:
    """The function that opens this component."""
    _discover()
    try:
        return _halves[spec.kind, spec.tag]
    except KeyError:
        raise InternalError(f"the {spec.kind} {spec.tag!r} has no runtime half") from None


@cache
def _discover() -> None:
    import forgeplan.runtime.data

    for module in pkgutil.walk_packages(forgeplan.runtime.data.__path__, "forgeplan.runtime.data."):
        importlib.import_module(module.name)
