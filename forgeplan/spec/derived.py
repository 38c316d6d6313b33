"""How is a value that nobody writes computed from those that somebody did?

The functions live in the compiler; the evaluator gets them by path and orders them with everything else.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from attrs import frozen

from forgeplan.spec.types import FieldType


@frozen
class Derived:
    """`compute` gets the structured values at `reads`, in that order, and returns a value of `type`.

    It returns None where a stated fact is missing. If `path` is also a field of the plan, the function supplies its
    value where the field's default is DERIVED and nobody wrote it, or where the value in force is `auto`; otherwise the
    path is a derived value and cannot be assigned.
    """

    path: str
    type: FieldType
    reads: tuple[str, ...]
    compute: Callable[..., Any]
    doc: str
