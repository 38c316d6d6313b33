"""`forgeplan lock`: pin the files that plans import."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from forgeplan.cli.candidates import plan_files
from forgeplan.cli.files import write_bytes
from forgeplan.cli.terminal import Command, show, write
from forgeplan.diagnostics.refusal import UsageError
from forgeplan.runtime.options import ExitCode

if TYPE_CHECKING:
    from forgeplan.dsl.lockfile import Pin


@click.command("lock", cls=Command, short_help="Pin the files that plans import.")
@click.argument("files", nargs=-1, metavar="[FILE...]", shell_complete=plan_files)
@click.option("--check", is_flag=True, help="Write nothing; exit code 10 if forge.lock would change.")
def command(files: tuple[str, ...], check: bool) -> int:
    """Write forge.lock, which pins the bytes of every file that plans of the project import.

    With FILEs, what these import is pinned, and the rest stays as it is; without, what all plan files of the project
    import is pinned, and nothing else.
    """
    from forgeplan.dsl.imports import project_of
    from forgeplan.dsl.locking import imports_of, project_files

    paths = [Path(file) for file in files]
    projects = {project_of(path) for path in paths} or {project_of(Path.cwd() / "plan.forge")}
    if len(projects) > 1:
        raise UsageError("these files belong to several projects\n  help: lock one project at a time")
    [project] = projects
    plans = paths or project_files(project)
    if not plans:
        raise UsageError(f"there is no plan file in {project}")
    found = imports_of(plans, project)
    if found.errors:
        after = "\n\nnothing is pinned: what is imported cannot be told as long as this stands"
        show(found.errors, found.sources, err=True, after=after)
        return ExitCode.FAILED
    return _renew(project, found.files, is_whole=not files, check=check)


def _renew(project: Path, files: dict[str, Pin], is_whole: bool, check: bool) -> int:
    from forgeplan.dsl.imports import shown
    from forgeplan.dsl.lockfile import LOCK, write_lock
    from forgeplan.dsl.locking import changes, present_lock, renewed

    before = present_lock(project)
    after = renewed(before, files, is_whole)
    target = shown(project / LOCK)
    if before == after:
        write(f"{target} needs no change: {_files(len(after.files))}")
        return ExitCode.FINE
    for line in changes(before, after):
        write(f"  {line}")
    if check:
        write(f"{target} would change" if before else f"there is no {target} that can be read", err=True)
        return ExitCode.DIFFERENCES
    write_bytes(target, write_lock(after).encode())
    write(f"{target} pins {_files(len(after.files))}")
    return ExitCode.FINE


def _files(number: int) -> str:
    return f"{number} file{'s' * (number != 1)}"
