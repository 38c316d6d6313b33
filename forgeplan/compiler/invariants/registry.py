"""What is an invariant, and what does it yield?

One function a code. It reads facts and yields findings; a fact that was rejected before silences it. Every value that
takes part is shown: at its place if a text decided it, in a note if not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from math import isqrt
from typing import Any

from attrs import frozen

from forgeplan.compiler.changes import Change
from forgeplan.compiler.discovery import import_all
from forgeplan.compiler.facts import Fact, Facts, Poisoned, is_bare_option
from forgeplan.compiler.wording import listing, plan_text
from forgeplan.diagnostics.codes import Code, Level, code, lint_code
from forgeplan.diagnostics.diagnostic import Diagnostic, Edit, Fix, Label, Safety, Severity
from forgeplan.diagnostics.span import NOWHERE

MOST_TRIALS = 100_000
MANY = 8
"""Of more legal values than this, only the nearest are shown."""
NEAREST = 2
"""So many of the legal values of a field are offered as fixes."""


@frozen
class Finding:
    """A diagnostic, and for each field that alone could mend it, values that satisfy every check."""

    diagnostic: Diagnostic
    repairs: Mapping[str, tuple[Any, ...]]
    changes: tuple[Change, ...] = ()
    """What may be written in the plan to mend it, each alone, the likeliest first."""

    @property
    def is_error(self) -> bool:
        return self.diagnostic.severity is Severity.ERROR

    @property
    def key(self) -> tuple[str, str]:
        return self.diagnostic.code, self.diagnostic.message


@frozen
class Legal:
    """A field and its legal values, as a help line and as repairs."""

    path: str
    values: tuple[Any, ...]
    text: str
    nearest: tuple[str, ...] = ()
    """The values next to the present one, as they are written in a plan."""


@frozen
class Invariant:
    """A registered check. Calling it yields its findings; it is silent where it reads a rejected value."""

    code: Code
    check: Callable[[Facts], Iterator[Finding]]

    def __call__(self, facts: Facts) -> list[Finding]:
        return self.findings(facts) or []

    def findings(self, facts: Facts) -> list[Finding] | None:
        """What it finds; None where it reads a rejected value."""
        try:
            return list(self.check(facts))
        except Poisoned:
            return None

    def at(
        self,
        message: str,
        *places: Fact | Label | None,
        legal: Iterable[Legal] = (),
        help: Iterable[str] = (),
        notes: Iterable[str] = (),
        fixes: Iterable[Fix] = (),
        changes: Iterable[Change] = (),
    ) -> Finding:
        """A finding; the first place is the primary one, the others are further values of the relation."""
        labels: list[Label] = []
        unplaced: list[str] = []
        for place in places:
            label = place.label() if isinstance(place, Fact) else place
            if label is not None:
                labels.append(label)
            elif isinstance(place, Fact):
                unplaced.append(f"{place.equation} ({place.source})")
        legal = tuple(legal)
        diagnostic = self.code.at(
            labels[0] if labels else None,
            message,
            *labels[1:],
            help=(*(line.text for line in legal if line.text), *help),
            notes=(*([listing(unplaced)] if unplaced else []), *notes),
            fixes=fixes,
        )
        offered = (*(Change(line.path, text) for line in legal for text in line.nearest), *changes)
        return Finding(diagnostic, {line.path: line.values for line in legal if line.values}, offered)


_registry: dict[str, Invariant] = {}


def invariant(id: str, rule: str) -> Callable[[Callable[[Facts], Iterator[Finding]]], Invariant]:
    """Register a check of errors under its code."""
    return _register(code(id, rule))


def lint(
    name: str, rule: str, level: Level = Level.WARN
) -> Callable[[Callable[[Facts], Iterator[Finding]]], Invariant]:
    """Register a check of what is legal and most likely unwanted."""
    return _register(lint_code(name, rule, level))


def declared(known: Code) -> Callable[[Callable[[Facts], Iterator[Finding]]], Invariant]:
    """Register a check for a code that is declared elsewhere, as files decide it too."""
    return _register(known)


def _register(declared: Code) -> Callable[[Callable[[Facts], Iterator[Finding]]], Invariant]:
    def register(check: Callable[[Facts], Iterator[Finding]]) -> Invariant:
        found = Invariant(declared, check)
        _registry[declared.id] = found
        return found

    return register


@cache
def invariants() -> tuple[Invariant, ...]:
    """All registered checks, by code."""
    import_all("forgeplan.compiler.invariants")
    return tuple(found for _, found in sorted(_registry.items()))


def legal(facts: Facts, path: str, candidates: Iterable[Any], *, also: str = "") -> Legal:
    """The legal ones among the candidates: all if they are few, else the nearest to the present value."""
    values = tuple(facts.legal_values(path, candidates))
    setting = facts.setting(path)
    texts = [plan_text(v, setting.type if setting else None) for v in values]
    present = facts.leaves[path].value if path in facts.leaves else None
    nearest = tuple(_around(values, texts, present, NEAREST))
    if len(values) > MANY:
        texts = _around(values, texts, present, 4)
    noun = "legal value" if len(values) == 1 else "legal values"
    text = f"{noun} of {path}: {listing(texts)}{also}" if texts else ""
    if texts and is_bare_option(path, facts.leaves):
        _, name, option = path.split(".", 2)
        text = f"in apply: {listing((f'{name} {{ {option} = {text} }}' for text in texts), ' or ')}"
    return Legal(path, values, text, nearest)


def rewritten(fact: Fact, text: str, title: str, safety: Safety = Safety.ASK) -> tuple[Fix, ...]:
    """The fix that writes `text` where the value stands, if it stands in a file of the project."""
    span = fact.origin.span if fact.origin else NOWHERE
    if span.file.startswith(("<", "std:")):
        return ()
    return (Fix(title, (Edit(span, text),), safety),)


def _around(values: tuple[Any, ...], texts: list[str], present: Any, number: int) -> list[str]:
    """So many of the values that are nearest to the present one, in their order; the first of what has no order."""
    try:
        nearest = sorted(range(len(values)), key=lambda i: abs(values[i] - present))[:number]
    except TypeError:
        nearest = list(range(len(values)))[:number]
    return [texts[i] for i in sorted(nearest)]


def divisors(number: int) -> list[int]:
    """All divisors, in order; of a huge number those that are small, and what they leave."""
    small = [d for d in range(1, min(isqrt(number), MOST_TRIALS) + 1) if number % d == 0]
    return sorted({*small, *(number // d for d in small)})


def neighbours(value: int, multiple: int) -> list[int]:
    """The nearest multiples below and above a value that is none; only positive ones."""
    below = value // multiple * multiple
    return [v for v in (below, below + multiple) if v > 0]
