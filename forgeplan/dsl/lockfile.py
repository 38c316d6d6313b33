"""What does a project's `forge.lock` say, and how is it written?

TOML with a table for each imported file: the hash of its bytes, and a short hash of each declaration in it, so that a
later difference can be shown at its place. The same files give the same text, whoever locks them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from hashlib import sha256
from typing import Any

from attrs import Factory, field, frozen

LOCK = "forge.lock"
FORMAT = 1
MAX_SIZE = 2**20
"""Characters: 256 files, which is as many as a plan may import, have a tenth of it."""

_HEAD = "# Written by `forgeplan lock`: the files that plans of this project import, as they were looked at.\n"
_SHA256 = re.compile(r"[0-9a-f]{64}")


class Unreadable(ValueError):
    """A text is no lock that can be read; the message says why."""


@frozen
class Pin:
    """One imported file, as it was locked."""

    sha256: str
    """Of its bytes: 64 hexadecimal digits."""
    declarations: Mapping[str, str] = field(default=Factory(dict))
    """By what a person calls each declaration (`h200`, `plan base`): a short hash of its text, in the file's order."""
    forgeplan: str = ""
    """Of a `std:` module: the version that it came with."""


@frozen
class Lock:
    """`files` by path relative to the project, with `/`; a `std:` module by its name."""

    files: Mapping[str, Pin] = field(default=Factory(dict))

    def with_pin(self, name: str, pin: Pin) -> Lock:
        return Lock({**self.files, name: pin})


def digest(text: str) -> str:
    """Hash of the bytes of a file with this text: ends of lines count, as they are part of what is read."""
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def write_lock(lock: Lock) -> str:
    """The text of forge.lock, sorted by name."""
    tables = [_table(name, lock.files[name]) for name in sorted(lock.files)]
    return "\n".join([f"{_HEAD}format = {FORMAT}\n", *tables])


def _table(name: str, pin: Pin) -> str:
    lines = [f"[files.{_quoted(name)}]", f'sha256 = "{pin.sha256}"']
    if pin.forgeplan:
        lines.append(f"forgeplan = {_quoted(pin.forgeplan)}")
    if pin.declarations:
        lines += [f"[files.{_quoted(name)}.declarations]"]
        lines += [f'{_quoted(declared)} = "{short}"' for declared, short in pin.declarations.items()]
    return "\n".join(lines) + "\n"


def _quoted(text: str) -> str:
    """A basic string of TOML, which escapes as JSON does, and the delete character too."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def read_lock(text: str) -> Lock:
    """Raises Unreadable."""
    import tomllib

    if len(text) > MAX_SIZE:
        raise Unreadable(f"it has more than {MAX_SIZE:,} characters")

    try:
        document = tomllib.loads(text.replace("\r\n", "\n"))
    except ValueError as error:  # A merge that was not finished, mostly.
        raise Unreadable(f"it is no TOML: {error}") from None
    except RecursionError:
        raise Unreadable("its brackets nest too deep") from None
    if document.get("format") != FORMAT:
        raise Unreadable(f"it has format {document.get('format')!r}, and this forgeplan reads format {FORMAT}")
    files = document.get("files", {})
    if not isinstance(files, dict):
        raise Unreadable("`files` is no table")
    return Lock({name: _pin(name, table) for name, table in files.items()})


def _pin(name: str, table: Any) -> Pin:
    fields = table if isinstance(table, dict) else {}
    hash, version, declarations = (fields.get(key, "") for key in ("sha256", "forgeplan", "declarations"))
    if not isinstance(hash, str) or not _SHA256.fullmatch(hash):
        raise Unreadable(f"{name} has no sha256 of 64 hexadecimal digits")
    if not isinstance(declarations, dict):
        declarations = {}
    return Pin(hash, {str(key): str(value) for key, value in declarations.items()}, str(version))
