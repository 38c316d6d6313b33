"""How does a running process say no?"""

from __future__ import annotations

from collections.abc import Iterable

from forgeplan.diagnostics.codes import Code


class Refusal(Exception):
    """The run cannot go on, for a reason with a code. Shown as one message, never as a traceback; exit code 1."""

    def __init__(self, code: Code, message: str, help: str | Iterable[str] = ()) -> None:
        super().__init__(f"{code.id}: {message}")
        self.code = code
        self.message = message
        self.help = (help,) if isinstance(help, str) else tuple(help)


class UsageError(Exception):
    """The command line asks for something that does not exist; exit code 2."""


class InternalError(Exception):
    """A bug of forgeplan itself; shown with a request to report it, exit code 3."""
