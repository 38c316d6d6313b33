"""`forgeplan fmt`: bring plan files into their one form."""

from __future__ import annotations

import difflib
import os
import sys

import click
from attrs import define, field

from forgeplan.cli.candidates import plan_files
from forgeplan.cli.files import as_text, read_bytes, write_bytes
from forgeplan.cli.terminal import Command, show, write
from forgeplan.diagnostics.refusal import UsageError
from forgeplan.runtime.options import ExitCode

_STDIN = "-"


@click.command("fmt", cls=Command, short_help="Bring plan files into their one form.")
@click.argument("files", nargs=-1, required=True, metavar="FILE|FOLDER...", shell_complete=plan_files)
@click.option("--check", is_flag=True, help="Write nothing; exit code 10 if a file would change.")
@click.option("--diff", is_flag=True, help="Write nothing; show what would change.")
def command(files: tuple[str, ...], check: bool, diff: bool) -> int:
    """Rewrite each FILE in the one form of plan files; `-` reads standard input and writes standard output.

    Of a folder all `*.forge` files are formatted, those in folders below too, but for hidden ones.

    The meaning and every comment stay; a file with syntax errors is left as it is.
    """
    formatting = Formatting(check, diff)
    for file in dict.fromkeys(found for given in files for found in _in(given)):
        formatting.format(file)
    return formatting.finish()


def _in(given: str) -> list[str]:
    """The plan files of a folder, sorted; a file itself. Raises UsageError for a folder without any."""
    if given == _STDIN or not os.path.isdir(given):
        return [given]
    found = []
    for folder, folders, names in os.walk(given):
        folders[:] = [name for name in folders if not name.startswith(".")]
        found += [os.path.join(folder, n) for n in names if n.endswith(".forge") and not n.startswith(".")]
    if not found:
        raise UsageError(f"the folder {given} has no *.forge files")
    return sorted(found)


@define
class Formatting:
    check: bool
    diff: bool
    changed: list[str] = field(factory=list)
    num_unchanged: int = 0
    num_faulty: int = 0

    def format(self, file: str) -> None:
        """Format one file. Raises UsageError for what cannot be read or written."""
        name = "<stdin>" if file == _STDIN else file
        data = sys.stdin.buffer.read() if file == _STDIN else read_bytes(file)
        text = as_text(data, name)
        formatted = self._formatted(text, name)
        if formatted is None:
            self.num_faulty += 1
            return
        if formatted.encode() == data:
            self.num_unchanged += 1
        else:
            self.changed.append(name)
        if self.diff:
            _show_difference(text, formatted, name)
        elif file == _STDIN and not self.check:
            write(formatted, end="")
        elif formatted.encode() != data and not self.check:
            write_bytes(file, formatted.encode())

    def finish(self) -> int:
        """Say on standard error what was done; the exit code."""
        would_be = "would be " if self.check or self.diff else ""
        for name in self.changed:
            if name != "<stdin>" or would_be:
                write(f"{would_be}formatted: {name}", err=True)
        if not self.changed and not self.num_faulty and self.num_unchanged:
            write(f"{_files(self.num_unchanged)} in form already", err=True)
        if self.num_faulty:
            return ExitCode.FAILED
        return ExitCode.DIFFERENCES if self.check and self.changed else ExitCode.FINE

    def _formatted(self, text: str, name: str) -> str | None:
        from forgeplan.diagnostics.source import Sources
        from forgeplan.dsl.formatter import CannotFormat, format_text

        try:
            return format_text(text, name)
        except CannotFormat as fault:
            sources = Sources()
            sources.add(name, text)
            show(fault.diagnostics, sources, err=True, after=f"\n\n{name} is left as it is")
            return None


def _show_difference(before: str, after: str, name: str) -> None:
    lines = difflib.unified_diff(before.splitlines(), after.splitlines(), name, f"{name} (formatted)", lineterm="")
    text = "\n".join(lines)
    if text:
        write(text)


def _files(number: int) -> str:
    return f"{number} file{'s' * (number > 1)}"
