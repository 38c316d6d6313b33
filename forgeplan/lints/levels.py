"""Which level does a project give to each lint? `[lints]` in its `forge.toml` says so, by name."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from attrs import frozen

from forgeplan.compiler.invariants.registry import invariants
from forgeplan.diagnostics.codes import Level, code, registered
from forgeplan.diagnostics.diagnostic import Diagnostic, Edit, Fix
from forgeplan.diagnostics.source import Sources
from forgeplan.diagnostics.span import Span
from forgeplan.diagnostics.suggest import choice, did_you_mean, nearest
from forgeplan.dsl.imports import shown

UNREADABLE = code("FP0214", "forge.toml can be read, and gives levels to lints that exist")
MAX_BYTES = 1 << 20


@frozen
class Levels:
    """The levels of a project; a lint that it does not name has its own."""

    by_name: Mapping[str, Level]

    def of(self, name: str) -> Level | None:
        """None for what is no lint."""
        known = registered().get(name)
        return None if known is None or known.level is None else self.by_name.get(name, known.level)


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
    if text is None:
        try:
            text = _read(file)
        except (OSError, UnicodeDecodeError, ValueError) as reason:
            return Levels({}), [UNREADABLE.at(None, f"{shown(file)} cannot be read: {reason}")]
    if "lints" not in text:
        return _whole(text, file, sources)
    try:
        found = tomllib.loads(text).get("lints", {})
    except tomllib.TOMLDecodeError as reason:
        return Levels({}), [_broken(str(reason), text, file, sources)]
    if not isinstance(found, dict):
        return Levels({}), [_at("lints", text, file, sources, "`lints` is a table of names and levels")]
    return _levels(found, text, file, sources)


def _read(file: Path) -> str:
    """The text of a file, "" if there is none. Raises OSError, UnicodeDecodeError, and ValueError if it is too long."""
    if not file.is_file():
        return ""
    with file.open("rb") as opened:
        data = opened.read(MAX_BYTES + 1)
    if len(data) > MAX_BYTES:
        raise ValueError(f"it has more than {MAX_BYTES:,} bytes")
    return data.decode("utf-8-sig")


def _whole(text: str, file: Path, sources: Sources) -> tuple[Levels, list[Diagnostic]]:
    try:
        tomllib.loads(text)
    except tomllib.TOMLDecodeError as reason:
        return Levels({}), [_broken(str(reason), text, file, sources)]
    return Levels({}), []


def _levels(found: Mapping[str, Any], text: str, file: Path, sources: Sources) -> tuple[Levels, list[Diagnostic]]:
    levels: dict[str, Level] = {}
    faults = []
    known = [level.value for level in Level]
    for name, value in found.items():
        if name not in lint_names():
            faults.append(_unknown(name, text, file, sources))
        elif value not in known:
            message = f"the level of `{name}` is {choice(known)}, not {value!r}"
            faults.append(_at(name, text, file, sources, message))
        else:
            levels[name] = Level(value)
    return Levels(levels), faults


def _unknown(name: str, text: str, file: Path, sources: Sources) -> Diagnostic:
    if name in registered():
        return _at(name, text, file, sources, f"{name} is an error, and errors have no level")
    meant = nearest(name, lint_names())
    help = did_you_mean(meant) if meant else f"lints are {choice(lint_names())}"
    found = _at(name, text, file, sources, f"there is no lint `{name}`", help)
    span = found.span
    if meant is None or span is None:
        return found
    fix = Fix(f"write `{meant}`", (Edit(span, meant),))
    return UNREADABLE.at(span, found.message, help=help, fixes=fix)


def _at(name: str, text: str, file: Path, sources: Sources, message: str, help: str | Iterable[str] = ()) -> Diagnostic:
    """A fault at the line of a key."""
    source = sources.add(shown(file), text)
    section = re.search(r"(?m)^\s*\[?\s*lints\b", text)
    key = re.compile(rf"(?m)(?:^|[{{,\s\"'.]){re.escape(name)}(?=[\"'\s=.\]]|$)").search(
        text, section.start() if section else 0
    )
    start = text.index(name, key.start()) if key else 0
    return UNREADABLE.at(Span(source.name, start, start + (len(name) if key else 1)), message, help=help)


def _broken(reason: str, text: str, file: Path, sources: Sources) -> Diagnostic:
    """A text that is no TOML, at the place that the reader names."""
    source = sources.add(shown(file), text)
    place = re.search(r"line (\d+), column (\d+)", reason)
    start = max(0, len(text) - 1)
    if place is not None:
        lines = text.splitlines(keepends=True)
        start = min(start, sum(map(len, lines[: int(place[1]) - 1])) + int(place[2]) - 1)
    said = reason.partition(" (at ")[0]
    return UNREADABLE.at(Span(source.name, start, start + 1), f"{source.name} is no TOML: {said[:1].lower()}{said[1:]}")
