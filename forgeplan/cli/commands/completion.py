"""`forgeplan completion`: let the shell complete commands, plan files and what is in them."""

from __future__ import annotations

import click

from forgeplan.cli.terminal import Command, write


@click.command("completion", cls=Command, short_help="A script that lets bash, zsh or fish complete command lines.")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]), metavar="bash|zsh|fish")
def command(shell: str) -> None:
    """Write a script for the shell that completes commands, options, plan files, and the plans, profiles, params and
    fields of a file."""
    from forgeplan.cli.main import forgeplan
    from forgeplan.cli.shells import SHELLS, VARIABLE

    write(SHELLS[shell](forgeplan, {}, "forgeplan", VARIABLE).source(), end="")
