"""What of forgeplan do people and programs rely on by name? Commands with their options, codes, exit codes.

`python -m tests.surface.surface` writes the lists of this folder anew, and the pages of `docs/reference` with them; the
difference belongs to review.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import click

from forgeplan.cli.main import forgeplan
from forgeplan.diagnostics.pages import all_codes, page
from forgeplan.runtime.options import ExitCode
from tests.docs.reference import write_all as write_reference

FOLDER = Path(__file__).parent


def commands() -> Iterator[str]:
    """`forgeplan lint FILE... [--format full|concise|json] …`, a line for each command."""
    context = click.Context(forgeplan)
    yield synopsis("forgeplan", forgeplan)
    for name in forgeplan.list_commands(context):
        command = forgeplan.get_command(context, name)
        assert command is not None
        yield synopsis(f"forgeplan {name}", command)


def synopsis(path: str, command: click.Command) -> str:
    """Arguments, then options; what may be left out stands in brackets, `…` behind what may be repeated."""
    context = click.Context(command)
    arguments = [p.make_metavar(context) for p in command.params if isinstance(p, click.Argument)]
    options = [_option(p, context) for p in command.params if isinstance(p, click.Option)]
    return " ".join([path, *arguments, *options])


def _option(option: click.Option, context: click.Context) -> str:
    name = "|".join(option.opts)
    if isinstance(option.type, click.Choice):
        name += f" {'|'.join(option.type.choices)}"
    elif not option.is_flag:
        name += f" {option.metavar or option.type.name.upper()}"
    return f"[{name}]{'…' if option.multiple else ''}"


def codes() -> Iterator[str]:
    for code in all_codes():
        found = page(code)
        assert found is not None
        yield f"{code}  {found.rule}"


def exit_codes() -> Iterator[str]:
    found = {value: name for name, value in vars(ExitCode).items() if isinstance(value, int)}
    for value, name in sorted(found.items()):
        yield f"{value:>3}  {name}"


LISTS = {"commands.txt": commands, "codes.txt": codes, "exit_codes.txt": exit_codes}


def write_all() -> None:
    write_reference()
    for name, lines in LISTS.items():
        (FOLDER / name).write_text("\n".join(lines()) + "\n", encoding="utf-8")


if __name__ == "__main__":
    write_all()
