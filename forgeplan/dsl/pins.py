"""Is an imported file the one that the project's `forge.lock` pins, and where does it begin to differ?"""

from __future__ import annotations

import posixpath
from collections.abc import Mapping
from functools import cache
from hashlib import sha256
from pathlib import Path

from attrs import define, field

from forgeplan.diagnostics.codes import code
from forgeplan.diagnostics.diagnostic import Diagnostic, Edit, Fix, Label, Safety
from forgeplan.diagnostics.source import Sources
from forgeplan.diagnostics.span import Span
from forgeplan.dsl import syntax
from forgeplan.dsl.lockfile import LOCK, MAX_SIZE, Lock, Pin, digest, read_lock, write_lock

NOT_AS_LOCKED = code("FP0207", "imported bytes match `forge.lock` when the project has one")

_SHORT = 12


@define
class Pins:
    """The lock of one project, as one reading of a plan file holds its imports to it."""

    name: str
    """Of forge.lock, as the reader knows it."""
    text: str
    sources: Sources
    lock: Lock | str
    """Or why it cannot be read."""
    _is_told: bool = field(init=False, default=False)

    def fault(self, name: str, text: str, file: syntax.File, span: Span) -> Diagnostic | None:
        """What is wrong with an imported file. `name` is the one it has in the lock, `span` the path of the import."""
        if isinstance(self.lock, str):
            return self._unreadable(self.lock, span)
        known = self.lock.files.get(name)
        if known is not None and known.sha256 == digest(text):
            return None
        fix = self._fix(name, self.lock.with_pin(name, pin_of(name, text, file)))
        if known is None:
            help = f"read {name}, then pin it: `forgeplan lock`"
            return NOT_AS_LOCKED.at(span, f"{name} is not in {LOCK}", help=help, fixes=fix)
        hashes = f"sha256 {digest(text)[:_SHORT]}… instead of {known.sha256[:_SHORT]}…"
        differs = first_difference(known, text, file)
        return NOT_AS_LOCKED.at(
            span,
            f"{name} is not what {LOCK} pins: {hashes}",
            *([differs] if isinstance(differs, Label) else []),
            help="look at the difference, then take it: `forgeplan lock`",
            notes=[*([differs] if isinstance(differs, str) else []), *_upgrade(known)],
            fixes=fix,
        )

    def _unreadable(self, why: str, span: Span) -> Diagnostic | None:
        """Said once: it is one cause, however many imports there are."""
        if self._is_told:
            return None
        self._is_told = True
        message = f"{self.name} cannot be read, so nothing vouches for what is imported: {why}"
        return NOT_AS_LOCKED.at(span, message, help="write it anew: `forgeplan lock`")

    def _fix(self, name: str, present: Lock) -> Fix:
        self.sources.add(self.name, self.text)
        edit = Edit(Span(self.name, 0, len(self.text)), write_lock(present))
        return Fix(f"pin {name} as it is now", (edit,), Safety.ASK)


def pin_of(name: str, text: str, file: syntax.File) -> Pin:
    """A file as it is now; `name` is the one it has in the lock."""
    declarations = {declared: _hash(text, span) for declared, span in declarations_of(file)}
    return Pin(digest(text), declarations, present_version() if name.startswith("std:") else "")


def name_in_lock(path: Path | None, name: str, project: Path) -> str:
    """What a file is called in the lock: its path inside the project, or its name as a `std:` module."""
    return name if path is None else posixpath.join(*path.relative_to(project).parts)


def declarations_of(file: syntax.File) -> list[tuple[str, Span]]:
    """What a file declares, as a person calls it, in order. Of two with one name the first counts."""
    found: dict[str, Span] = {}
    for item in file.items:
        name = _called(item)
        if name:
            found.setdefault(name, item.span)
    return list(found.items())


def _called(item: syntax.Item) -> str:
    match item:
        case syntax.Let() | syntax.Param():
            return item.name.text
        case syntax.Plan() | syntax.Sweep():
            return f"{type(item).__name__.lower()} {item.name.text}"
        case syntax.Test():
            return f"test {_plain(item.title)}"
        case syntax.Import() | syntax.FromImport():
            return f"import {_plain(item.source)}"
    return ""


def _plain(text: syntax.Text) -> str:
    return "".join(part for part in text.parts if isinstance(part, str))


def _hash(text: str, span: Span) -> str:
    """Whatever the ends of lines are: those show in the hash of the file."""
    written = text[span.start : span.end].replace("\r\n", "\n")
    return sha256(written.encode("utf-8", "surrogatepass")).hexdigest()[:_SHORT]


def first_difference(known: Pin, text: str, file: syntax.File) -> Label | str:
    """The first declaration that is not as it was locked; in words where it has no place."""
    present = declarations_of(file)
    for name, span in present:
        if name not in known.declarations:
            return Label(span, f"`{name}` is new")
        if known.declarations[name] != _hash(text, span):
            return Label(span, f"`{name}` is the first that differs")
    gone = next((name for name in known.declarations if name not in dict(present)), None)
    if gone is not None:
        return f"`{gone}` is gone"
    if known.sha256 in (digest(text.replace("\r\n", "\n")), digest(text.replace("\r\n", "\n").replace("\n", "\r\n"))):
        return "only the ends of lines differ; with `*.forge text eol=lf` in .gitattributes git leaves them alone"
    return "every declaration is as it was: comments, blank lines or the order differ"


def _upgrade(known: Pin) -> list[str]:
    present = present_version()
    if known.forgeplan in ("", present):
        return []
    return [f"it was locked with forgeplan {known.forgeplan}, and this is {present}"]


@cache
def present_version() -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("forgeplan-torch")
    except PackageNotFoundError:
        return "unknown"


def pins_of(project: Path, shown: str, unsaved: Mapping[str, str], sources: Sources) -> Pins | None:
    """The lock of a project, or None where it has none. `unsaved` has texts that an editor holds, by real path."""
    path = project / LOCK
    try:
        text = unsaved[str(path)] if str(path) in unsaved else _read(path)
        return Pins(shown, text, sources, read_lock(text))
    except FileNotFoundError:
        return None
    except OSError as reason:
        return Pins(shown, "", sources, (reason.strerror or type(reason).__name__).lower())
    except ValueError as reason:  # No text, or no lock.
        return Pins(shown, "", sources, str(reason))


def _read(path: Path) -> str:
    """No more of a file than tells that it is too large."""
    with path.open("rb") as file:
        return file.read(4 * MAX_SIZE + 4).decode("utf-8")
