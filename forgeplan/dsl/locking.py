"""What should a project's `forge.lock` say now?"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

import attrs
from attrs import frozen

from forgeplan.diagnostics.diagnostic import Diagnostic, Severity
from forgeplan.diagnostics.source import Sources
from forgeplan.dsl.imports import Importer
from forgeplan.dsl.load import read_text
from forgeplan.dsl.lockfile import LOCK, Lock, Pin, Unreadable, read_lock
from forgeplan.dsl.pins import name_in_lock, pin_of


@frozen
class Imports:
    """What plan files import, and the errors that leave that open."""

    files: dict[str, Pin]
    errors: tuple[Diagnostic, ...]
    sources: Sources


def imports_of(plans: Iterable[Path], project: Path) -> Imports:
    """Every file that these plan files of a project bring in, by its name in the lock.

    Raises UsageError for a plan file that cannot be read.
    """
    sources = Sources()
    found: dict[str, Pin] = {}
    faults: list[Diagnostic] = []
    for plan in plans:
        importer = Importer(project, sources, faults.append)
        importer.root(plan, read_text(plan))
        for module in importer.imported():
            name = name_in_lock(module.path, module.name, project)
            source = sources.get(module.name)
            if name not in found and source is not None:
                found[name] = pin_of(name, source.text, module.file)
    errors = {fault: None for fault in faults if fault.severity is Severity.ERROR}
    return Imports(found, tuple(sorted(errors, key=Diagnostic.sort_key)), sources)


def present_lock(project: Path) -> Lock | None:
    """The lock that a project has; None where there is none, or none that can be read."""
    try:
        return read_lock((project / LOCK).read_bytes().decode("utf-8"))
    except (OSError, UnicodeDecodeError, Unreadable):
        return None


def renewed(before: Lock | None, files: dict[str, Pin], is_whole: bool) -> Lock:
    """The lock with these files; unless they are all, the others stay.

    A `std:` module whose bytes did not change keeps the version that it was locked with.
    """
    old = before.files if before is not None else {}
    kept = {} if is_whole else old
    return Lock({**kept, **{name: _keeping_version(old.get(name), pin) for name, pin in files.items()}})


def _keeping_version(old: Pin | None, new: Pin) -> Pin:
    if old is None or old.sha256 != new.sha256:
        return new
    return attrs.evolve(new, forgeplan=old.forgeplan)


def changes(before: Lock | None, after: Lock) -> list[str]:
    """A line for each file that is pinned anew, otherwise, or no more: `+ lib/a.forge`, `~ lib/b.forge (h200)`."""
    old = before.files if before is not None else {}
    lines = []
    for name in sorted(old.keys() | after.files.keys()):
        if name not in old:
            lines.append(f"+ {name}")
        elif name not in after.files:
            lines.append(f"- {name}")
        elif old[name].sha256 != after.files[name].sha256:
            lines.append(f"~ {name} ({_altered(old[name], after.files[name])})")
    return lines


def _altered(old: Pin, new: Pin) -> str:
    a, b = old.declarations, new.declarations
    names = [name for name in {**b, **a} if a.get(name) != b.get(name)]
    return ", ".join(names) or "comments, or ends of lines"


def project_files(project: Path) -> list[Path]:
    """Every plan file of a project, sorted; hidden folders, links and projects inside it are passed over."""
    return sorted(_walk(project))


def _walk(project: Path) -> Iterator[Path]:
    for folder, inner, names in os.walk(project):
        here = Path(folder)
        inner[:] = [name for name in inner if name[0] != "." and not (here / name / "forge.toml").is_file()]
        yield from (here / name for name in names if name.endswith(".forge") and name[0] != ".")
