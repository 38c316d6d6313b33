"""In which order do the analyses of a job run, and who may read what?

An analysis is a function with a name and the names of what it needs. It runs once, when first asked for, and sees only
what it declared; a job in which a needed value was rejected poisons the analyses above it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from attrs import define, field, frozen

from forgeplan.compiler.facts import Facts
from forgeplan.diagnostics.refusal import InternalError


@frozen
class Analysis:
    """One declared pass: `run` gets the results it needs and returns its own."""

    name: str
    needs: tuple[str, ...]
    run: Callable[[Results], Any]
    doc: str


_registry: dict[str, Analysis] = {}


def analysis(name: str, *needs: str) -> Callable[[Callable[[Results], Any]], Callable[[Results], Any]]:
    """Declare a function as the analysis `name`, which reads the results of `needs` and the facts."""

    def register(function: Callable[[Results], Any]) -> Callable[[Results], Any]:
        if name in _registry:
            raise InternalError(f"the analysis {name!r} is declared twice")
        _registry[name] = Analysis(name, needs, function, (function.__doc__ or "").strip())
        return function

    return register


@define
class Results:
    """The analyses of one job, made on demand."""

    facts: Facts
    _done: dict[str, Any] = field(factory=dict)
    _visible: tuple[str, ...] | None = None
    """Names the running analysis declared; None outside of one."""

    def __getitem__(self, name: str) -> Any:
        """The result of an analysis. Raises Poisoned where a value it needs was rejected."""
        if self._visible is not None and name not in self._visible:
            raise InternalError(f"an analysis reads {name!r} without having declared it")
        if name not in self._done:
            found = analyses()[name]
            self._done[name] = found.run(Results(self.facts, self._done, found.needs))
        return self._done[name]


def analyses() -> dict[str, Analysis]:
    """All declared analyses, by name."""
    from forgeplan.compiler import passes

    passes.load()
    return _registry


def in_order(names: Iterable[str] = ()) -> list[Analysis]:
    """The named analyses (all, if none is named) with what they need, each after its needs."""
    known, ordered = analyses(), dict[str, Analysis]()

    def visit(name: str, above: tuple[str, ...]) -> None:
        if name in above:
            raise InternalError(f"the analyses need each other: {' → '.join((*above, name))}")
        for need in known[name].needs:
            visit(need, (*above, name))
        ordered.setdefault(name, known[name])

    for name in tuple(names) or sorted(known):
        visit(name, ())
    return list(ordered.values())
