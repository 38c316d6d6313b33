"""What can the place that output goes to show: how many columns, which colours, and is anybody still reading?"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

import click

if TYPE_CHECKING:
    from forgeplan.diagnostics.diagnostic import Diagnostic
    from forgeplan.diagnostics.source import Sources

_COLOR = "forgeplan.color"
_WIDTH_ELSEWHERE = 80
_WIDEST = 120


class Command(click.Command):
    """A command with the option `--color`, which all have."""

    def __init__(self, *args: object, **settings: object) -> None:
        super().__init__(*args, **settings)  # type: ignore[arg-type]
        self.params.append(
            click.Option(
                ["--color"],
                type=click.Choice(["auto", "always", "never"]),
                default="auto",
                show_default=True,
                expose_value=False,
                callback=_keep_color,
                help="Colours; `auto` means on a terminal, unless NO_COLOR is set.",
            )
        )


def _keep_color(ctx: click.Context, parameter: click.Parameter, choice: str) -> None:
    ctx.meta[_COLOR] = choice


def has_color(stream: TextIO) -> bool:
    """Whether colours may be written to a stream, by `--color`, NO_COLOR and what the stream is."""
    context = click.get_current_context(silent=True)
    choice = context.meta.get(_COLOR, "auto") if context else "auto"
    if choice != "auto":
        return bool(choice == "always")
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def width_of(stream: TextIO) -> int:
    """Columns of a terminal, or 80 for what is no terminal."""
    if not stream.isatty():
        return _WIDTH_ELSEWHERE
    return max(40, min(_WIDEST, shutil.get_terminal_size((_WIDTH_ELSEWHERE, 24)).columns))


def prepare_output() -> None:
    """Let no character be an error, and no missing stream: what a terminal cannot show is written as its code."""
    _open_missing()
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="backslashreplace")


def _open_missing() -> None:
    """Let a standard stream that is closed (`>&-`) lead nowhere; else the next file that is opened takes its place."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        try:
            os.fstat(number)
        except OSError:
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(number, "w" if number else "r", encoding="utf-8", closefd=False))


def write(text: str, *, err: bool = False, end: str = "\n") -> None:
    """Print. A reader that has left (`| head`) is no error: the command goes on, and its exit code counts."""
    stream = sys.stderr if err else sys.stdout
    try:
        stream.write(text + end)
        stream.flush()
    except BrokenPipeError:
        _discard(stream)
    except OSError:
        _discard(stream)
        raise


def _discard(stream: TextIO) -> None:
    """Send what is still written to a stream nowhere, also what the interpreter flushes at its end."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, stream.fileno())
    os.close(nowhere)


def show(
    diagnostics: Iterable[Diagnostic],
    sources: Sources,
    *,
    err: bool = False,
    format: str = "full",
    after: str = "",
    checked: Iterable[str] = (),
    root: Path | None = None,
) -> None:
    """Print diagnostics, if there are any (as a document, also if not); `after` follows them.

    `checked` and `root` are as in `render_all`.
    """
    from forgeplan.diagnostics.formats import render_all

    stream = sys.stderr if err else sys.stdout
    width, color = width_of(stream), has_color(stream)
    text = render_all(diagnostics, sources, format=format, width=width, color=color, checked=checked, root=root)
    if text:
        write(text + after, err=err)
