"""By which rules is a foreign key taken over? A format is a table of rules, and a few parts that read several keys."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fnmatch import fnmatchcase
from fractions import Fraction
from typing import Any, TypeVar

from attrs import Factory, define, frozen

from forgeplan.diagnostics.refusal import UsageError
from forgeplan.diagnostics.suggest import did_you_mean, nearest
from forgeplan.dsl.units import show_amount
from forgeplan.importer.draft import Draft
from forgeplan.importer.report import Outcome, Row
from forgeplan.importer.spelling import FLAG, REAL, TEXT, TEXTS, WHOLE, Kind, Members, shortened

T = TypeVar("T")


@frozen
class Take:
    """The value goes to one field."""

    path: str
    kind: Kind | Members
    default: Any = None
    """What the source's own program takes where the key is missing; None leaves our default alone."""
    ours: str = ""
    """Our default: a missing key whose default is the same needs no statement."""
    how: str = ""
    """What differs in meaning, for a key that is taken and changed."""
    lacking: str = ""
    """Of `Members`: why a word without an equivalent has none."""


@frozen
class Lose:
    """There is no field for it; `unless` are values with which nothing is lost."""

    why: str
    unless: tuple[Any, ...] = ()


@frozen
class Ignore:
    """It changes nothing that a plan says."""

    why: str


@frozen
class Join:
    """A part reads it together with others; `idle` is why it may have had no effect."""

    idle: str


Rule = Take | Lose | Ignore | Join


@frozen
class Options:
    """What the command line adds to a source."""

    nodes: int | None = None
    devices_per_node: int | None = None
    cluster: str = "h100_node"
    least_nodes: int = 1
    """Where neither the command line nor the source says how many machines there are."""


@define
class Importing:
    """One import under way."""

    file: str
    format: str
    values: Mapping[str, Any]
    """By dotted key, in the order of the file."""
    options: Options
    draft: Draft
    rows: dict[str, Row] = Factory(dict)
    defaults: list[str] = Factory(list)
    assumed: list[str] = Factory(list)
    refused: list[str] = Factory(list)
    is_open: bool = False
    """Whether nothing says how many machines there are."""

    def whole(self, key: str, default: int) -> int:
        return self._typed(key, WHOLE, default)

    def real(self, key: str, default: int | str) -> Fraction:
        """Exactly as it is written; a default may be a text, `3e-4`."""
        return self._typed(key, REAL, Fraction(default))

    def number(self, key: str, default: int | str) -> str:
        """The same, as a plan writes it."""
        return show_amount(self.real(key, default))

    def text(self, key: str, default: str) -> str:
        return self._typed(key, TEXT, default)

    def texts(self, key: str) -> list[str]:
        return self._typed(key, TEXTS, [])

    def flag(self, key: str, default: bool) -> bool:
        return self._typed(key, FLAG, default)

    def read(self, key: str, kind: Kind) -> Any:
        """Raises UsageError for a value of another kind."""
        value = kind.read(self.values[key])
        if value is None:
            raise UsageError(f"{self.file}: {key} is {shortened(self.values[key])}, and must be {kind.name}")
        return value

    def _typed(self, key: str, kind: Kind, default: T) -> T:
        return self.read(key, kind) if key in self.values else default

    def took(self, key: str, became: str, how: str = "") -> None:
        """A key is taken over; with `how`, changed. Keys that are not in the source have no row."""
        self._row(key, Outcome.CHANGED if how else Outcome.TAKEN, became, how)

    def lost(self, key: str, why: str) -> None:
        self._row(key, Outcome.LOST, "", why)

    def ignored(self, key: str, why: str) -> None:
        self._row(key, Outcome.IGNORED, "", why)

    def _row(self, key: str, outcome: Outcome, became: str, why: str) -> None:
        if key in self.values:
            self.rows[key] = Row(key, shortened(self.values[key]), outcome, became, why)

    def supposed(self, key: str, became: str) -> None:
        """What the source's program takes where the key is missing."""
        if key not in self.values:
            self.defaults.append(f"{key}  →  {became}")

    def put(self, key: str, path: str, text: str, how: str = "", comment: str = "") -> None:
        """Set a field from one key, and say so. A value that the source leaves out is said to be its default."""
        known = key in self.values
        self.draft.set(path, text, comment or ("" if known else f"default of {self.format}"))
        self.took(key, f"{path} = {text}", how)
        self.supposed(key, f"{path} = {text}")


Part = Callable[[Importing], None]


@frozen
class Format:
    """How the files of one program are read."""

    name: str
    rules: Mapping[str, Rule]
    """By key; a key may be a glob, and the first that fits counts."""
    parts: Sequence[Part]
    """They run first, in order; a part may refuse the whole file."""

    def convert(self, this: Importing) -> None:
        """Give every key of the source its row, and the draft its values."""
        for part in self.parts:
            part(this)
            if this.refused:
                break
        for key, rule in self.rules.items():
            if isinstance(rule, Take) and not (key in this.rows or this.refused):
                _take(this, key, rule)
        for key in this.values:
            if key not in this.rows:
                _settle(this, key, self.rule(key), self.rules)

    def rule(self, key: str) -> Rule | None:
        found = self.rules.get(key)
        return found or next((r for pattern, r in self.rules.items() if fnmatchcase(key, pattern)), None)


def _take(this: Importing, key: str, rule: Take) -> None:
    known = key in this.values
    if not known and rule.default is None:
        return
    if isinstance(rule.kind, Members):
        word = this.values.get(key, rule.default)
        text = rule.kind.get(word)
        if text is None:
            this.lost(key, rule.lacking or "no member of the language says that")
            return
    else:
        text = rule.kind.spell(this.read(key, rule.kind) if known else rule.kind.read(rule.default))
    if known or text != rule.ours:
        this.put(key, rule.path, text, rule.how)


def _settle(this: Importing, key: str, rule: Rule | None, known: Mapping[str, Rule]) -> None:
    """The row of a key that no part and no field took."""
    if this.refused:
        this.rows[key] = Row(
            key, shortened(this.values[key]), Outcome.UNREAD, "", "there is no plan that it could be of"
        )
    elif isinstance(rule, Lose) and this.values[key] not in rule.unless:
        this.lost(key, rule.why)
    elif isinstance(rule, Lose):
        this.ignored(key, "nothing is asked for")
    elif isinstance(rule, Ignore):
        this.ignored(key, rule.why)
    elif isinstance(rule, Join | Take):
        this.ignored(key, rule.idle if isinstance(rule, Join) else "another key says it")
    else:
        meant = nearest(key, known)
        hint = f"; {did_you_mean(meant)}" if meant else ""
        this.lost(key, f"no key of {this.format} that this importer knows{hint}")
