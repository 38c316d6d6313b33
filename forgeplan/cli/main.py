"""What does `forgeplan` do with its command line, and with which exit code does it end?"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path

import click

from forgeplan.cli.failure import exit_code_of
from forgeplan.cli.terminal import prepare_output
from forgeplan.runtime.options import ExitCode

_COMMANDS = Path(__file__).parent / "commands"


class Commands(click.Group):
    """Every file of `commands/` is one command, with its name; it is imported when it is asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(path.stem for path in _COMMANDS.glob("[!_]*.py"))

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name not in self.list_commands(ctx):
            return None
        from importlib import import_module

        command: click.Command = import_module(f"forgeplan.cli.commands.{name}").command
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        if self.get_command(ctx, name) is None and not name.startswith("-"):
            ctx.fail(_unknown(name, self.list_commands(ctx)))
        return super().resolve_command(ctx, args)


def _unknown(name: str, known: Sequence[str]) -> str:
    from forgeplan.diagnostics.suggest import did_you_mean, nearest

    if Path(name).is_file():
        return f"there is no command `{name}`; to train what a plan file says: forgeplan run {name}"
    meant = nearest(name, known)
    rest = did_you_mean(meant) if meant else f"these are: {', '.join(known)}"
    return f"there is no command `{name}`; {rest}"


def version() -> str:
    """The installed version, or why there is none."""
    from importlib.metadata import PackageNotFoundError
    from importlib.metadata import version as installed

    try:
        return installed("forgeplan-torch")
    except PackageNotFoundError:
        return "(not installed: run from a checkout)"


def _show_version(ctx: click.Context, parameter: click.Parameter, wanted: bool) -> None:
    if not wanted or ctx.resilient_parsing:
        return
    click.echo(f"forgeplan {version()}")
    ctx.exit()


@click.group(
    cls=Commands,
    context_settings={"help_option_names": ["-h", "--help"]},
    no_args_is_help=True,
    epilog="To begin: `forgeplan new`, then `forgeplan run quickstart.forge`.",
)
@click.option(
    "--version", is_flag=True, is_eager=True, expose_value=False, callback=_show_version, help="Show the version."
)
def forgeplan() -> None:
    """Compile plan files, explain them, and train what they say."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command line (that of the process, if None) and return its exit code. Never raises."""
    prepare_output()
    try:
        if "_FORGEPLAN_COMPLETE" in os.environ:
            from forgeplan.cli.shells import use

            use()
        code = forgeplan.main(args=arguments, prog_name="forgeplan", standalone_mode=False)
        code = code if isinstance(code, int) else ExitCode.FINE
    except BaseException as error:  # the boundary of the process: every failure becomes a message and an exit code
        return exit_code_of(error)
    return code


if __name__ == "__main__":
    sys.exit(main())
