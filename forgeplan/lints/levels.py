"""Which level does a project give to each lint? `[lints]` in its `forge.toml` says so, by name."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from attrs import frozen

from forgeplan.compiler.invariants.registry import invariants
from forgeplan.diagnostics.codes import Level, code, find, registered
from forgeplan.diagnostics.diagnostic import Diagnostic, Edit, Fix
from forgeplan.diagnostics.source import Sources
from forgeplan.diagnostics.span import Span
from forgeplan.diagnostics.suggest import choice, did_you_mean, nearest
from forgeplan.dsl.imports import shown

UNREADABLE = code("FP0214", "forge.toml can be read, and gives levels to lints that exist")
MAX_BYTES = 1 << 20
TABLES = ("lints", "outputs")
"""What a `forge.toml` may hold."""


@frozen
class Levels:
    """The levels of a project; a lint that it does not name has its own."""

    by_name: Mapping[str, Level]

    def of(self, name: str) -> Level | None:
        """None for what is no lint."""
        known = find(name)
        return None if known is None or known.level is None else self.by_name.get(name, known.level)


def is_lint(name: str) -> bool:
    invariants()
    known = find(name)
    return known is not None and known.level is not None


def lint_names() -> list[str]:
    """All there are. Those of the compiler are registered when they are first asked for."""
    invariants()
    return [name for name, known in registered().items() if known.level is not None]


def read_levels(project: Path, sources: Sources, unsaved: Mapping[str, str] = {}) -> tuple[Levels, list[Diagnostic]]:
    """The levels of a project, and what is wrong with its `forge.toml`, whose text is then among the sources.

    `unsaved` has texts of files that an editor has open, by real path.
    """
    file = project / "forge.toml"
    text = unsaved.get(str(file.resolve()))
    try:
        text = _read(file) if text is None else text
    except (OSError, ValueError) as reason:
        return Levels({}), [UNREADABLE.at(None, f"{shown(file)} cannot be read: {_words(reason)}")]
    settings = _Settings(text, shown(file), sources)
    try:
        tables = tomllib.loads(text)
    except tomllib.TOMLDecodeError as reason:
        return Levels({}), [settings.broken(str(reason))]
    except RecursionError:
        return Levels({}), [settings.broken("it is nested too deep")]
    faults = [settings.unknown(name, TABLES, "table") for name in tables if name not in TABLES]
    found = tables.get("lints", {})
    if not isinstance(found, dict):
        return Levels({}), [*faults, settings.at("lints", "`lints` is a table of names and levels")]
    levels, more = _levels(found, settings)
    return Levels(levels), [*faults, *more]


def _read(file: Path) -> str:
    """The text of a file, "" if there is none. Raises OSError, and ValueError if it is too long or no UTF-8."""
    if not file.is_file():
        return ""
    with file.open("rb") as opened:
        data = opened.read(MAX_BYTES + 1)
    if len(data) > MAX_BYTES:
        raise ValueError(f"it has more than {MAX_BYTES:,} bytes")
    return data.decode("utf-8-sig")


def _words(reason: Exception) -> str:
    if isinstance(reason, UnicodeDecodeError):
        return f"byte {reason.start} is not UTF-8"
    return (reason.strerror or str(reason)) if isinstance(reason, OSError) else str(reason)


def _levels(found: Mapping[str, Any], settings: _Settings) -> tuple[dict[str, Level], list[Diagnostic]]:
    levels: dict[str, Level] = {}
    faults = []
    known = [level.value for level in Level]
    for name, value in found.items():
        if not is_lint(name) and find(name) is not None:
            faults.append(settings.at(name, f"{name} is an error, and errors have no level"))
        elif not is_lint(name):
            faults.append(settings.unknown(name, lint_names(), "lint"))
        elif value not in known:
            said = f"`{value}`" if isinstance(value, str) else "a value of another type"
            faults.append(settings.at(name, f"the level of `{name}` is {choice(known)}, not {said}"))
        else:
            levels[name] = Level(value)
    return levels, faults


@frozen
class _Settings:
    """The text of a `forge.toml`, shown where something is wrong in it."""

    text: str
    name: str
    sources: Sources

    def at(self, key: str, message: str, help: str = "") -> Diagnostic:
        """A fault at the place of a key, as far as it can be found."""
        self.sources.add(self.name, self.text)
        return UNREADABLE.at(self._span(key), message, help=help or ())

    def unknown(self, key: str, known: Sequence[str], kind: str) -> Diagnostic:
        """A fault of a key that is none of the known ones."""
        meant = nearest(key, known)
        help = did_you_mean(meant) if meant else f"there are {choice(known)}"
        found = self.at(key, f"there is no {kind} `{key}`", help)
        span = self._span(key)
        if meant is None or self.text[span.start : span.end] != key:
            return found
        return UNREADABLE.at(span, found.message, help=help, fixes=Fix(f"write `{meant}`", (Edit(span, meant),)))

    def broken(self, reason: str) -> Diagnostic:
        """A text that is no TOML, at the place that the reader names."""
        self.sources.add(self.name, self.text)
        place = re.search(r"line (\d+), column (\d+)", reason)
        start = max(0, len(self.text) - 1)
        if place is not None:
            lines = self.text.split("\n")[: int(place[1]) - 1]
            start = min(start, sum(len(line) + 1 for line in lines) + int(place[2]) - 1)
        said = reason.partition(" (at ")[0]
        message = f"{self.name} is no TOML: {said[:1].lower()}{said[1:]}"
        return UNREADABLE.at(Span(self.name, start, start + 1), message)

    def _span(self, key: str) -> Span:
        """Of the first line that begins or goes on with the key, comments left out; else of the first character."""
        section = re.search(r"(?m)^[ \t]*\[?[ \t]*lints\b", self.text)
        pattern = re.compile(rf"(?m)^[^#\n]*?(?<![\w-])({re.escape(key)})(?![\w-])") if key else None
        match = pattern.search(self.text, section.start() if section and key not in TABLES else 0) if pattern else None
        return Span(self.name, *(match.span(1) if match else (0, 1)))
