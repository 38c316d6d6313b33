"""`forgeplan lint`: what is wrong with these plan files?"""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from forgeplan.cli.candidates import plan_files
from forgeplan.cli.plan_file import Choice, has_errors
from forgeplan.cli.terminal import Command, show, write
from forgeplan.runtime.options import ExitCode

if TYPE_CHECKING:
    from forgeplan.diagnostics.diagnostic import Diagnostic


@click.command("lint", cls=Command, short_help="Check plan files.")
@click.argument("files", nargs=-1, required=True, metavar="FILE...", shell_complete=plan_files)
@click.option(
    "--format",
    type=click.Choice(["full", "concise", "json"]),
    default="full",
    show_default=True,
    help="With the lines of the plan, one line a message, or for programs.",
)
def command(files: tuple[str, ...], format: str) -> int:
    """Check every plan, profile and sweep of each FILE, and write nothing."""
    from forgeplan.diagnostics.formats import summary
    from forgeplan.diagnostics.source import Sources

    sources = Sources()
    found: dict[Diagnostic, None] = {}
    for file in files:
        analysis = Choice(file).analysed()
        for source in analysis.sources:
            sources.add(source.name, source.text)
        found |= dict.fromkeys(analysis.diagnostics)
    checked = f"{len(files)} file{'s' * (len(files) > 1)} checked"
    show(found, sources, format=format, after=f"\n\n{checked}: {summary(found)}" if format == "full" else "")
    if not found and format == "full":
        write(f"{checked}: nothing found")
    return ExitCode.FAILED if has_errors(found) else ExitCode.FINE
