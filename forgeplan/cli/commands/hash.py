"""`forgeplan hash`: one number for what a plan trains."""

from __future__ import annotations

import json

import click

from forgeplan.cli.candidates import plan_files
from forgeplan.cli.compiled import compiled
from forgeplan.cli.plan_file import Choice, choosing
from forgeplan.cli.terminal import Command, write


@click.command("hash", cls=Command, short_help="The hash of what a plan trains.")
@click.argument("file", shell_complete=plan_files)
@choosing
@click.option("--json", "as_json", is_flag=True, help="With the name, and the hash of the bytes of a compiled plan.")
def command(file: str, plan: str | None, profile: str | None, overrides: tuple[str, ...], as_json: bool) -> None:
    """Print the hash of what FILE trains and how: a plan file, a compiled plan, a run directory or a checkpoint.

    It is the same for two spellings of the same values, on every machine; names, comments and output paths do not
    enter.
    """
    found = compiled(Choice(file, plan, profile, overrides, as_json))
    if not as_json:
        write(found.meaning)
        return
    from forgeplan.plan.stored import is_stored

    facts = {"name": found.name, "meaning": found.meaning, "file": found.file if is_stored(file) else None}
    write(json.dumps(facts, indent=2, ensure_ascii=False))
