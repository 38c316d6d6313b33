"""`forgeplan lint`: what is wrong with these plan files, and what of it can be mended at once?"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import click

from forgeplan.cli.candidates import plan_files
from forgeplan.cli.plan_file import Choice, has_errors
from forgeplan.cli.terminal import Command, show, write
from forgeplan.diagnostics.formats import FORMATS
from forgeplan.diagnostics.refusal import UsageError
from forgeplan.runtime.options import ExitCode

if TYPE_CHECKING:
    from forgeplan.analysis import Analysis
    from forgeplan.cli.fixing import Fixing
    from forgeplan.diagnostics.diagnostic import Diagnostic


@click.command("lint", cls=Command, short_help="Check plan files.")
@click.argument("files", nargs=-1, required=True, metavar="FILE...", shell_complete=plan_files)
@click.option(
    "--format",
    type=click.Choice(list(FORMATS)),
    default="full",
    show_default=True,
    help="With the lines of the plan, one line a message, or for programs and services.",
)
@click.option("--fix", is_flag=True, help="Apply the fixes that are safe, and write the files.")
@click.option("--fix-all", is_flag=True, help="Apply also those that choose among meanings, or change what trains.")
@click.option("--diff", is_flag=True, help="With `--fix` or `--fix-all`: show what would change, and write nothing.")
def command(files: tuple[str, ...], format: str, fix: bool, fix_all: bool, diff: bool) -> int:
    """Check every plan, profile and sweep of each FILE; write nothing but what `--fix` mends."""
    if diff and not (fix or fix_all):
        raise UsageError("`--diff` shows what fixes would change\n  help: add `--fix` or `--fix-all`")
    if not (fix or fix_all):
        analyses: Mapping[str, Analysis] = {file: Choice(file).analysed() for file in files}
        return _shown(analyses, format)
    from forgeplan.cli.fixing import Fixing

    fixing = Fixing(files, unsafe=fix_all)
    analyses = fixing.run()
    if diff:
        return _would(fixing, analyses)
    fixing.write()
    _say_done(fixing, "fixed", err=format != "full")
    return _shown(analyses, format)


def _shown(analyses: Mapping[str, Analysis], format: str) -> int:
    """Show what was found in the files; the exit code."""
    from forgeplan.diagnostics.formats import summary
    from forgeplan.diagnostics.source import Sources

    sources = Sources()
    for analysis in analyses.values():
        for source in analysis.sources:
            sources.include(source)
    found = _found(analyses)
    names = dict.fromkeys(analysis.loaded.module.name for analysis in analyses.values())
    checked = f"{len(analyses)} file{'s' * (len(analyses) > 1)} checked"
    after = f"\n\n{checked}: {summary(found)}{_mendable(found)}" if format == "full" else ""
    show(found, sources, format=format, after=after, checked=names, root=Choice(str(Path.cwd() / "_")).project)
    if not found and format == "full":
        write(f"{checked}: nothing found")
    return _exit_code(found)


def _mendable(found: Iterable[Diagnostic]) -> str:
    """Which of the messages have fixes, and how they are applied."""
    from forgeplan.cli.fixing import of_plans
    from forgeplan.diagnostics.diagnostic import Safety

    fixable = [fixes for diagnostic in found if (fixes := [fix for fix in diagnostic.fixes if of_plans(fix)])]
    safe = sum(any(fix.safety is Safety.SAFE for fix in fixes) for fixes in fixable)
    ways = ((safe, "--fix"), (len(fixable) - safe, "--fix-all"))
    shown = [f"{number} can be mended by `{option}`" for number, option in ways if number]
    return f" ({', '.join(shown)})" if shown else ""


def _would(fixing: Fixing, analyses: Mapping[str, Analysis]) -> int:
    """Show what would change, and how many messages would be left; the exit code is that of the changed files."""
    from forgeplan.diagnostics.formats import summary

    for name in fixing.changed:
        write(fixing.difference(name))
    _say_done(fixing, "would be fixed", err=True)
    left = _found(analyses)
    if left:
        write(f"would be left: {summary(left)}", err=True)
    return _exit_code(left)


def _say_done(fixing: Fixing, what: str, *, err: bool) -> None:
    for name in fixing.changed:
        write(f"{what}: {name}", err=err)
        for done in fixing.done:
            if name in done.files:
                write(f"  {done.found.code}: {done.fix.title}", err=err)


def _found(analyses: Mapping[str, Analysis]) -> dict[Diagnostic, None]:
    return dict.fromkeys(found for analysis in analyses.values() for found in analysis.diagnostics)


def _exit_code(found: Iterable[Diagnostic]) -> int:
    return ExitCode.FAILED if has_errors(found) else ExitCode.FINE
