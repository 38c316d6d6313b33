"""Which of several small things has all that is to be kept of a large one?"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Generic, TypeVar

from attrs import frozen

T = TypeVar("T")

Features = Mapping[str, Any]
"""What is to be kept, by a name for a person: `several heads on a rank` → True."""


@frozen
class Found:
    """Values by path for a small plan, and the names of what they keep and do not keep."""

    values: dict[str, Any]
    kept: frozenset[str] = frozenset()
    lost: frozenset[str] = frozenset()


@frozen
class Choice(Generic[T]):
    """The chosen candidate, the wanted features that it has, and those that it should have and does not."""

    best: T
    kept: frozenset[str]
    lost: frozenset[str]

    def found(self, values: dict[str, Any]) -> Found:
        """The choice as values of a plan."""
        return Found(values, self.kept, self.lost)


def most_alike(wanted: Features, candidates: Iterable[T], features: Callable[[T], Features]) -> Choice[T]:
    """The first candidate with all wanted features, else the first with most of them.

    A feature that a candidate does not speak of is none that it could have: whole weights are on one rank. Raises
    ValueError without candidates.
    """
    chosen: Choice[T] | None = None
    for candidate in candidates:
        found = features(candidate)
        kept = frozenset(name for name, value in wanted.items() if name in found and found[name] == value)
        lost = frozenset(name for name in wanted if name in found) - kept
        if chosen is None or len(lost) < len(chosen.lost):
            chosen = Choice(candidate, kept, lost)
        if not lost:
            break
    if chosen is None:
        raise ValueError("nothing to choose from")
    return chosen
