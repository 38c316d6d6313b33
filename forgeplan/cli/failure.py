"""How does a failed command end: with which message, and which exit code?"""

from __future__ import annotations

import contextlib
import os
import sys
import traceback

import click

from forgeplan.diagnostics.refusal import InternalError, Refusal, UsageError
from forgeplan.diagnostics.refusals import as_text
from forgeplan.runtime.options import ExitCode

TRACEBACK_VARIABLE = "FORGEPLAN_TRACEBACK"


def exit_code_of(error: BaseException) -> int:
    """Tell a person what went wrong, on standard error, and return the exit code that says it to a program."""
    if _wants_traceback():
        traceback.print_exception(error)
    match error:
        case SystemExit(code=code):
            return code if isinstance(code, int) else ExitCode.FINE if code is None else ExitCode.FAILED
        case click.exceptions.Exit():
            return error.exit_code
        case click.Abort() | KeyboardInterrupt():
            return _say("interrupted", ExitCode.ABORTED)
        case click.exceptions.NoArgsIsHelpError():
            click.echo(error.format_message(), err=True)
            return ExitCode.USAGE
        case click.UsageError():
            return _say(_usage(error), ExitCode.USAGE)
        case UsageError():
            return _say(f"error: {error}", ExitCode.USAGE)
        case Refusal():
            return _say(as_text(error), ExitCode.FAILED)
        case OSError() if not isinstance(error, ConnectionError):
            return _say(f"error: {_of_the_system(error)}", ExitCode.FAILED)
    return _say(_bug(error), ExitCode.INTERNAL)


def _usage(error: click.UsageError) -> str:
    command = f"\n  help: `{error.ctx.command_path} -h` shows how it is used" if error.ctx else ""
    message = error.format_message()
    return f"error: {message[:1].lower()}{message[1:].rstrip('.')}{command}"


def _of_the_system(error: OSError) -> str:
    reason = (error.strerror or str(error) or type(error).__name__).lower()
    return f"{error.filename}: {reason}" if error.filename else reason


def _bug(error: BaseException) -> str:
    first = next(iter(str(error).strip().splitlines()), "")
    what = first if isinstance(error, InternalError) else f"{type(error).__name__}: {first}".removesuffix(": ")
    return (
        f"internal error: {what}\n"
        "  this is a bug in forgeplan; please report it with this command and the plan file\n"
        f"  help: {TRACEBACK_VARIABLE}=1 before the command shows where it happened"
    )


def _wants_traceback() -> bool:
    return os.environ.get(TRACEBACK_VARIABLE, "") not in ("", "0")


def _say(message: str, code: int) -> int:
    # Standard error may be closed, or unable to hold a character: the exit code still says what happened.
    with contextlib.suppress(OSError, ValueError):
        print(message.encode("utf-8", "backslashreplace").decode("utf-8"), file=sys.stderr, flush=True)
    return code
